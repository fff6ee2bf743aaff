//! One random stream for each purpose, so that a new client or class changes no other stream.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// Purpose of a random stream.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    FileSizes,
    Popularity,
    Client(u32),
    /// A movie that all clients see.
    Movie,
    /// A disk of a client of kind `server`, on a day.
    Disk {
        client: u32,
        disk: u8,
        day: u16,
    },
}

/// The generator for a purpose within a class of a run.
pub(crate) fn generator(seed: u64, class: &str, purpose: Purpose) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ fnv1a(class));
    rng.set_stream(match purpose {
        Purpose::FileSizes => 0,
        Purpose::Popularity => 1,
        Purpose::Client(client) => 2 + u64::from(client),
        Purpose::Movie => 1 << 40,
        Purpose::Disk { client, disk, day } => {
            1 << 63 | u64::from(client) << 24 | u64::from(disk) << 16 | u64::from(day)
        }
    });
    rng
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo): stable over releases, unlike the standard library's hasher.
fn fnv1a(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv1a_of_published_vectors() {
        assert_eq!(fnv1a(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a("foobar"), 0x8594_4171_f739_67e8);
    }
}
