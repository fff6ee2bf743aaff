//! Compiles the BPF programs to skeletons and records the git commit.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use libbpf_cargo::SkeletonBuilder;

fn main() {
    let out_dir = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let architecture = match env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default().as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => panic!("no BPF programs for {other}: only x86_64 and aarch64 are supported"),
    };
    for name in ["block", "files"] {
        let source = format!("bpf/{name}.bpf.c");
        println!("cargo:rerun-if-changed={source}");
        let built = SkeletonBuilder::new()
            .source(&source)
            .clang_args([
                format!("-D__TARGET_ARCH_{architecture}"),
                "-mcpu=v3".to_owned(),
                "-Wall".to_owned(),
                "-Ibpf".to_owned(),
            ])
            .build_and_generate(out_dir.join(format!("{name}.skel.rs")));
        if let Err(error) = built {
            panic!(
                "{source} could not be compiled. clang 14 or later with the BPF target is needed \
                 (Debian: apt-get install clang llvm libelf-dev zlib1g-dev).\n{error:?}"
            );
        }
    }
    for header in ["kernel.h", "block.h", "event.bpf.h", "names.bpf.h", "table.bpf.h", "files.h"] {
        println!("cargo:rerun-if-changed=bpf/{header}");
    }
    println!("cargo:rustc-env=WEIR_GIT_COMMIT={}", git_commit().unwrap_or_else(|| "unknown".to_owned()));
}

/// The commit that is checked out, with `-dirty` after it if tracked files differ from it.
fn git_commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let directory = git(&["rev-parse", "--absolute-git-dir"])?;
    for file in ["HEAD", "logs/HEAD"] {
        let path = Path::new(&directory).join(file);
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    let commit = git(&["rev-parse", "HEAD"])?;
    let dirty = git(&["status", "--porcelain", "--untracked-files=no"]).is_none_or(|lines| !lines.is_empty());
    Some(if dirty { format!("{commit}-dirty") } else { commit })
}
