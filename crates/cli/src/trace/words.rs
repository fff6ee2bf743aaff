//! Numbers as a person reads them.

/// A whole number in groups of three digits: `44,519`.
pub fn whole(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with at least four significant digits, and no more decimals than it takes.
pub fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let magnitude = value.abs().log10().floor();
    if magnitude < -5.0 {
        return format!("{value:.3e}");
    }
    let decimals = (3.0 - magnitude).clamp(0.0, 8.0) as usize;
    format!("{value:.decimals$}")
}

/// A time, in the unit that suits it: `1.500 ms`.
pub fn time(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        below if below < 1e3 => (ns, "ns"),
        below if below < 1e6 => (ns / 1e3, "us"),
        below if below < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", number(value))
}

/// An amount of data, in the binary unit that suits it: `4 KiB`.
pub fn bytes(amount: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = amount;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let text = if value.fract() == 0.0 { format!("{value:.0}") } else { number(value) };
    format!("{text} {}", units[unit])
}

/// A share in percent.
pub fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([0, 999, 1000, 1_234_567].map(whole), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([5914.2, 0.07382, 116.73, 1e-7].map(number), ["5914", "0.07382", "116.7", "1.000e-7"]);
        assert_eq!((time(1.5e6), time(603_064.6e9)), ("1.500 ms".to_owned(), "603065 s".to_owned()));
        assert_eq!((bytes(4096.0), bytes(1_500.0)), ("4 KiB".to_owned(), "1.465 KiB".to_owned()));
        assert_eq!(percent(0.293), "29.30 %");
    }
}
