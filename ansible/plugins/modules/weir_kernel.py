"""Module `weir_kernel`: the running kernel, a kernel image, and how the boot loader names it. Reads only."""

import hashlib
import json
import re
import shutil
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: weir_kernel
author: The weir developers
short_description: Read the running kernel and kernel images
description:
  - Reads release, build and boot of the running kernel, and release and build of an image from its header, so
    that the kernel that runs after a boot can be compared with the image that was meant. Changes nothing.
options:
  image:
    description: An image (bzImage). Empty for the running kernel only.
    type: path
  grub:
    description: Whether the entry of the image in grub's menu is looked for.
    type: bool
    default: false
  folder:
    description: Folder of grub.cfg and grubenv.
    type: path
    default: /boot/grub
  record:
    description: File with the host's own kernel, which another boot left. It need not exist.
    type: path
"""

RETURN = """
running: {description: "release, version (uname -v) and boot_id.", type: dict, returned: always}
booted_image: {description: File name of its image; empty if unknown., type: str, returned: always}
command_line: {description: Its command line without what the boot loader adds., type: str, returned: always}
image: {description: "release, version and sha256 of the image.", type: dict, returned: if image is given}
entry: {description: "Entry of the image in grub's menu; empty without one.", type: str, returned: if grub}
default_image: {description: File name of the default's image or empty., type: str, returned: if grub}
pending: {description: Entry of grub's next boot; empty without one., type: str, returned: if grub}
one_shot: {description: Whether grub.cfg boots such an entry once., type: bool, returned: if grub}
kexec: {description: "Why kexec cannot be used; empty if it can.", type: str, returned: always}
loaded: {description: Whether a kernel is loaded for kexec., type: bool, returned: always}
own: {description: "Content of record, or null.", type: dict, returned: always}
"""

#: Magic of a bzImage at 0x202, and the place of the pointer to its version (Documentation/arch/x86/boot.rst).
MAGIC, MAGIC_AT, POINTER_AT, SECTOR = b"HdrS", 0x202, 0x20E, 0x200
#: The longest header that is read.
HEADER_BYTES = 1 << 16
#: What names a running kernel, and its files below /proc/sys/kernel.
KERNEL_FILES = {"release": "osrelease", "version": "version", "boot_id": "random/boot_id"}


def main():
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "image": {"type": "path"},
            "grub": {"type": "bool", "default": False},
            "folder": {"type": "path", "default": "/boot/grub"},
            "record": {"type": "path"},
        },
        supports_check_mode=True,
    )
    asked = module.params
    found = {"running": running(), "booted_image": booted_image(), "command_line": command_line()}
    found |= {"kexec": kexec_problem(), "loaded": loaded()}
    try:
        if asked["image"]:
            found["image"] = image(Path(asked["image"]))
        if asked["grub"]:
            found |= grub(Path(asked["folder"]), asked["image"] or "")
        found["own"] = own(Path(asked["record"])) if asked["record"] else None
    except (OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, **found)


def running():
    """Release, build and boot of the running kernel."""
    kernel = Path("/proc/sys/kernel")
    return {name: (kernel / file).read_text(encoding="utf-8").strip() for name, file in KERNEL_FILES.items()}


def booted_image():
    """File name of the running kernel's image as the boot loader read it; empty if it did not tell."""
    told = re.search(r"BOOT_IMAGE=(\S+)", Path("/proc/cmdline").read_text(encoding="utf-8"))
    return Path(told[1]).name if told else ""


def command_line():
    """The command line of the running kernel, for another kernel with the same root."""
    words = Path("/proc/cmdline").read_text(encoding="utf-8").split()
    return " ".join(word for word in words if not word.startswith(("BOOT_IMAGE=", "initrd=", "panic=")))


def kexec_problem():
    """Why kexec cannot be used; empty if it can."""
    if not shutil.which("kexec"):
        return "kexec is not installed (apt-get install --no-install-recommends kexec-tools)"
    disabled = Path("/proc/sys/kernel/kexec_load_disabled")
    if not disabled.is_file():
        return "this kernel has no kexec"
    if disabled.read_text(encoding="utf-8").strip() != "0":
        return "kernel.kexec_load_disabled is 1, which only a reboot undoes"
    return ""


def loaded():
    """Whether a kernel is loaded for kexec."""
    file = Path("/sys/kernel/kexec_loaded")
    return file.is_file() and file.read_text(encoding="utf-8").strip() == "1"


def own(record):
    """The host's own kernel as another boot left it; None without a record.

    Raises:
        ValueError: the record is damaged.
        OSError: it cannot be read.
    """
    if not record.is_file():
        return None
    try:
        found = json.loads(record.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(found.get(name), str) for name in KERNEL_FILES):
        raise ValueError(
            f"{record}: is damaged: found no JSON with {', '.join(KERNEL_FILES)} of the host's own kernel: "
            "boot that kernel (any reboot; for guests make hosts-down), and remove the file"
        )
    return found


def image(path):
    """Release, build and hash of an image.

    Raises:
        ValueError: the file is no bzImage.
        OSError: it cannot be read.
    """
    content = path.read_bytes()
    header = content[:HEADER_BYTES]
    start = int.from_bytes(header[POINTER_AT : POINTER_AT + 2], "little") + SECTOR
    text = header[start : header.find(b"\0", start)].decode("ascii", "replace")
    words = re.fullmatch(r"(\S+) .*?(#\d+.*)", text, re.ASCII)
    if header[MAGIC_AT : MAGIC_AT + len(MAGIC)] != MAGIC or not words:
        raise ValueError(
            f"{path}: is no kernel image: name a bzImage (arch/x86/boot/bzImage, /boot/vmlinuz-*)"
        )
    return {
        "release": words[1],
        "version": words[2].strip(),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def grub(folder, wanted):
    """The entry of an image in grub's menu, the image of its default, and the entry of the next boot.

    Raises:
        OSError: the menu cannot be read.
    """
    text = (folder / "grub.cfg").read_text(encoding="utf-8", errors="replace")
    block = folder / "grubenv"
    environment = block.read_text(encoding="utf-8", errors="replace") if block.is_file() else ""
    kept = dict(re.findall(r"^(\w+)=(.*)$", environment, re.MULTILINE))
    return {
        "entry": entry(text, Path(wanted).name) if wanted else "",
        "default_image": default_image(text, kept.get("saved_entry", "").strip()),
        "pending": kept.get("next_entry", "").strip(),
        "one_shot": "next_entry" in text and block.is_file(),
    }


def menu(text):
    """The entries of grub's menu that boot Linux.

    Yields the path of each entry (index, title and id or None of each level), the file name of its image,
    and the words of its command line.
    """
    path, counts = [], [0]
    for line in text.splitlines():
        if opened := re.match(r"""\s*(menuentry|submenu)\s+(['"])(.*?)\2(.*)""", line):
            named = re.search(r"""(?:--id|\$menuentry_id_option)\s+['"]?([^'"\s]+)""", opened[4])
            path.append((str(counts[-1]), opened[3], named[1] if named else None))
            counts[-1] += 1
            counts.append(0)
        elif re.match(r"\s*}\s*$", line) and path:
            path.pop()
            counts.pop()
        elif line.strip().endswith("{") and path:
            # A block of another command within the entry.
            path.append(None)
            counts.append(0)
        elif booted := re.match(r"\s*linux(?:efi|16)?\s+(\S+)(.*)", line):
            yield [level for level in path if level], Path(booted[1]).name, booted[2].split()


def entry(text, name):
    """The entry of grub's menu that boots an image, with its submenus (`SUBMENU>ENTRY`); empty without one.

    Entries for recovery are left out.
    """
    for path, image_name, words in menu(text):
        if image_name == name and not {"single", "recovery"} & set(words):
            return ">".join(named or title for _, title, named in path)
    return ""


def default_image(text, saved):
    """File name of the image that grub boots without a choice; empty if it cannot be told.

    Args:
        text: Content of grub.cfg.
        saved: The saved entry of grubenv.
    """
    given = re.findall(r"""^\s*set default="(.*)"$""", text, re.MULTILINE)
    chosen = [name for name in given if name != "${next_entry}"]
    if not chosen:
        return ""
    # grub boots the first entry if none is saved, and the first one of a submenu.
    wanted = ((saved or "0") if chosen[-1] == "${saved_entry}" else chosen[-1]).split(">")
    for path, image_name, _ in menu(text):
        if len(path) >= len(wanted) and all(name in level for name, level in zip(wanted, path, strict=False)):
            return image_name
    return ""


if __name__ == "__main__":
    main()
