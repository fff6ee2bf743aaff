//! Service model of devices without an arm for schedulers: service times are independent of position.

use weir_scheduler::{Request, ServiceModel};

use crate::device::{Device, IoRequest, Op};
use crate::flash::{FlashSsd, MOST_RETRIES};
use crate::flash_options::UNIT_BYTES;
use crate::instant::Instant;
use crate::service_model::inside;
use crate::ssd::Ssd;

impl Ssd {
    /// Time on the busiest channel, if all are free.
    fn alone_ns(&self, request: &IoRequest) -> u64 {
        let page_bytes = self.timing().page_bytes;
        let (begin, end) = (request.offset_bytes, request.end_bytes());
        let (first, last) = (begin / page_bytes, (end - 1) / page_bytes);
        let channels = self.channel_free_ns().len() as u64;
        let whole_ns = self.piece_ns(request.op, page_bytes);
        // The pages first + n, first + n + channels and so on are on one channel; only the first and the last may be parts.
        let busy_ns = |n: u64| {
            let mut busy_ns = ((last - first - n) / channels + 1) * whole_ns;
            let mut part = |page: u64, from: u64, to: u64| {
                if (page - first) % channels == n {
                    busy_ns = busy_ns - whole_ns + self.piece_ns(request.op, to - from);
                }
            };
            part(first, begin, end.min((first + 1) * page_bytes));
            if last > first {
                part(last, last * page_bytes, end);
            }
            busy_ns
        };
        let busiest_ns = (0..channels.min(last - first + 1)).map(busy_ns).max().unwrap_or(0);
        self.timing().command_overhead_ns + busiest_ns
    }
}

impl ServiceModel for Ssd {
    /// A row of pages, one on each channel.
    fn cylinder(&self, offset_bytes: u64) -> u32 {
        let row_bytes = self.timing().page_bytes * self.channel_free_ns().len() as u64;
        let last_bytes = Device::capacity_bytes(self).saturating_sub(1);
        u32::try_from(offset_bytes.min(last_bytes) / row_bytes.max(1)).unwrap_or(u32::MAX)
    }

    fn head_bytes(&self) -> u64 {
        Ssd::head_bytes(self)
    }

    /// Command overhead, the wait for the channel of the first page, and that page's latency.
    fn positioning_ns(&self, now_ns: u64, request: &Request) -> u64 {
        let request = inside(Device::capacity_bytes(self), request);
        let page = request.offset_bytes / self.timing().page_bytes;
        let channels = self.channel_free_ns();
        let free_ns = channels[(page % channels.len() as u64) as usize];
        let ready_ns = now_ns.saturating_add(self.timing().command_overhead_ns);
        free_ns.max(ready_ns) - now_ns + self.piece_ns(request.op, 0)
    }

    /// All channels free.
    fn expected_ns(&self, _: u64, request: &Request) -> u64 {
        self.alone_ns(&inside(Device::capacity_bytes(self), request))
    }

    /// As expected: nothing varies in a device that is free.
    fn bound_ns(&self, from_bytes: u64, request: &Request) -> u64 {
        self.expected_ns(from_bytes, request)
    }

    fn capacity_bytes(&self) -> u64 {
        Device::capacity_bytes(self)
    }
}

impl FlashSsd {
    /// Units and pages of a request, and how many of the pages may be on one die.
    fn extent(&self, request: &IoRequest) -> (u64, u64) {
        let units = request.end_bytes().div_ceil(UNIT_BYTES) - request.offset_bytes / UNIT_BYTES;
        let page_units = u64::from(self.options().page_units.max(1));
        let first_page = request.offset_bytes / UNIT_BYTES / page_units;
        let pages = (request.end_bytes() - 1) / UNIT_BYTES / page_units - first_page + 1;
        let options = self.options();
        let dies = u64::from(options.channels.max(1)) * u64::from(options.dies_per_channel.max(1));
        (units, pages.div_ceil(dies))
    }
}

impl ServiceModel for FlashSsd {
    /// A row of pages, one on each die.
    fn cylinder(&self, offset_bytes: u64) -> u32 {
        let options = self.options();
        let dies = u64::from(options.channels.max(1)) * u64::from(options.dies_per_channel.max(1));
        let row_bytes = u64::from(options.page_units.max(1)) * UNIT_BYTES * dies;
        let last_bytes = Device::capacity_bytes(self).saturating_sub(1);
        u32::try_from(offset_bytes.min(last_bytes) / row_bytes).unwrap_or(u32::MAX)
    }

    fn head_bytes(&self) -> u64 {
        FlashSsd::head_bytes(self)
    }

    /// Command overhead, and for a read the flash's latency; the state of the die is unknown outside.
    fn positioning_ns(&self, _: u64, request: &Request) -> u64 {
        let options = self.options();
        match request.op {
            Op::Read => options.lone_command_ns(Op::Read) + options.read_ns,
            Op::Write => options.lone_command_ns(Op::Write),
        }
    }

    /// With idle dies and room in the buffer.
    fn expected_ns(&self, _: u64, request: &Request) -> u64 {
        let request = inside(Device::capacity_bytes(self), request);
        let options = self.options();
        let (units, pages_on_die) = self.extent(&request);
        match request.op {
            Op::Write => {
                let unbuffered_ns = if options.is_buffered() {
                    0
                } else {
                    let page_units = units.min(u64::from(options.page_units));
                    let units_on_die = pages_on_die * page_units;
                    let programs = units_on_die.div_ceil(u64::from(options.program_units.max(1)));
                    programs * options.program_ns() + units_on_die * options.transfer_unit_ns
                };
                options.lone_command_ns(request.op)
                    + self.link_ns(u64::from(request.size_bytes))
                    + unbuffered_ns
            }
            Op::Read => {
                let on_channel = units.div_ceil(u64::from(options.channels.max(1)));
                let channel_ns =
                    on_channel.max(units.min(u64::from(options.page_units))) * options.transfer_unit_ns;
                // Without a second register a die waits for the channel between its pages.
                let page_units = units.min(u64::from(options.page_units));
                let hand_over_ns =
                    if options.cache_register { 0 } else { page_units * options.transfer_unit_ns };
                let handed_over_ns = pages_on_die.saturating_sub(1) * hand_over_ns;
                let flash_ns = pages_on_die * options.read_ns + channel_ns.max(handed_over_ns);
                // The link starts when the first page is there.
                let link_ns = options.read_ns + self.link_ns(units * UNIT_BYTES);
                options.lone_command_ns(request.op) + flash_ns.max(link_ns)
            }
        }
    }

    /// Without other outstanding requests, but with data in the buffer. A read waits for the current operations of its
    /// dies; a write may find the buffer full, and each of its units may wait for a die to clean.
    fn bound_ns(&self, _: u64, request: &Request) -> u64 {
        let request = inside(Device::capacity_bytes(self), request);
        let options = self.options();
        let (units, pages_on_die) = self.extent(&request);
        let slc_read_ns = options.slc.map_or(0, |slc| slc.read_ns);
        let copy_ns = options.read_ns.max(slc_read_ns) + options.program_unit_ns;
        let repeats = if options.retries.is_some() { 1 + MOST_RETRIES } else { 1 };
        let dies = u64::from(options.dies_per_channel.max(1));
        // Programs of other dies on the channel go between, as many as fit into the time.
        let on_channel_ns = |during_ns: u64| {
            let programs = dies * (during_ns / options.program_ns().max(1) + 1);
            (units + programs * u64::from(options.program_units.max(1))) * options.transfer_unit_ns
        };
        let work_ns = match request.op {
            Op::Read => {
                let units_ns = u64::from(options.program_units.max(1)) * dies * options.transfer_unit_ns;
                let longest_ns = options.erase_ns.max(copy_ns.max(options.program_ns()) + units_ns);
                let dies_ns = longest_ns + pages_on_die * options.read_ns.max(slc_read_ns) * repeats;
                // Without a second register, the die's pages wait for the channel one after another; each waits for no more than
                // all that the channel has to carry.
                let waits = if options.cache_register { 1 } else { pages_on_die };
                dies_ns + waits * on_channel_ns(dies_ns)
            }
            Op::Write => {
                // Each cycle of cleaning frees at least the spare share of a block.
                let spare = options.spare_share.max(1e-3);
                let cycles = ((1.0 + spare) / spare).ceil() as u64 + 1;
                let cycle_ns = u64::from(options.block_units) * copy_ns + options.erase_ns;
                // The buffer is full: the die's current program, and the one that makes room.
                let more_ns = 2 * (options.program_ns() - options.program_unit_ns);
                let transfers_ns =
                    2 * dies * u64::from(options.program_units.max(1)) * options.transfer_unit_ns;
                let unit_ns = cycles * cycle_ns + copy_ns + more_ns + transfers_ns;
                units * unit_ns
            }
        };
        options.lone_command_ns(request.op) + self.link_ns(units * UNIT_BYTES) + work_ns
    }

    fn capacity_bytes(&self) -> u64 {
        Device::capacity_bytes(self)
    }
}

/// All addresses are equal, and nothing takes time.
impl ServiceModel for Instant {
    fn cylinder(&self, _: u64) -> u32 {
        0
    }

    fn head_bytes(&self) -> u64 {
        0
    }

    fn positioning_ns(&self, _: u64, _: &Request) -> u64 {
        0
    }

    fn expected_ns(&self, _: u64, _: &Request) -> u64 {
        0
    }

    fn bound_ns(&self, _: u64, _: &Request) -> u64 {
        0
    }

    fn capacity_bytes(&self) -> u64 {
        Device::capacity_bytes(self)
    }
}
