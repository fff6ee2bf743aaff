//! Transition tables of the RUBiS and RUBBoS clients, in their text format exported from a spreadsheet.
//!
//! TAB-separated. Line 1 holds a title and the table's name; then come column headers, of which one cell spans two lines;
//! then a row for each state, and the rows `Back probability` and `End of Session`. A **column** is the current state, a
//! **row** the next one, contrary to the header cell: the clients index `transitions[column][row]`. After the columns
//! there is the waiting time in ms, and in some tables the unscaled time. Lines below are not read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use super::table::{BACK, END, NamedArcs, Parts};

const BACK_ROW: &str = "Back probability";
const END_ROW: &str = "End of Session";
const LARGEST_FILE_BYTES: u64 = 1 << 20;
/// Title, blank line, and the two lines of headers.
const LINES_BEFORE_STATES: usize = 4;

type Found<T> = Result<T, (Option<u64>, String)>;

/// Reads a table.
pub(super) fn read(path: &Path) -> Found<Parts> {
    let io = |error: std::io::Error| (None, format!("cannot be read: {error}"));
    let mut bytes = Vec::new();
    File::open(path).map_err(io)?.take(LARGEST_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > LARGEST_FILE_BYTES {
        return Err((
            None,
            format!("is too large for a table (expected at most {LARGEST_FILE_BYTES} bytes)"),
        ));
    }
    parse(&String::from_utf8_lossy(&bytes))
}

/// Takes the text of a table apart.
pub(super) fn fuzzing(text: &str) {
    let _ = parse(text);
}

fn parse(text: &str) -> Found<Parts> {
    let title = text.lines().next().unwrap_or_default();
    let name = match title.split('\t').collect::<Vec<_>>()[..] {
        [title, name, ..] if title.trim().ends_with("Transition Table") => name.trim().to_owned(),
        _ => {
            let wanted =
                "must begin with `RUBiS Transition Table` or `RUBBoS Transition Table`, a TAB and a name";
            return Err((Some(1), wanted.into()));
        }
    };
    let mut rows: Vec<(&str, Vec<&str>, u64)> = Vec::new();
    let mut ended = false;
    for (line, number) in text.lines().zip(1u64..).skip(LINES_BEFORE_STATES) {
        let mut cells = line.trim_end().split('\t');
        let label = cells.next().unwrap_or_default().trim();
        rows.push((label, cells.collect(), number));
        if label == END_ROW {
            ended = true;
            break;
        }
    }
    if !ended {
        return Err((None, format!("has no row `{END_ROW}`")));
    }
    let columns = rows.len().saturating_sub(2);
    if columns == 0 || rows[columns].0 != BACK_ROW {
        return Err((
            rows.get(columns).map(|row| row.2),
            format!("the row before `{END_ROW}` must be `{BACK_ROW}`"),
        ));
    }
    let states: Vec<String> = rows[..columns].iter().map(|row| row.0.to_owned()).collect();
    let mut probabilities: BTreeMap<String, BTreeMap<String, f32>> =
        states.iter().map(|state| (state.clone(), BTreeMap::new())).collect();
    let mut waiting_ms = BTreeMap::new();
    for (label, cells, line) in &rows {
        let to = match *label {
            BACK_ROW => BACK,
            END_ROW => END,
            state => state,
        };
        if cells.len() <= columns {
            let message =
                format!("row `{label}` has {} cells; {} and a waiting time are needed", cells.len(), columns);
            return Err((Some(*line), message));
        }
        for (from, cell) in states.iter().zip(cells) {
            let share: f32 = cell.trim().parse().map_err(|_| {
                (Some(*line), format!("row `{label}`, column `{from}` is {cell:?}, expected a probability"))
            })?;
            if share != 0.0
                && let Some(row) = probabilities.get_mut(from)
            {
                row.insert(to.to_owned(), share);
            }
        }
        let ms = cells[columns].trim();
        let ms = ms.parse().map_err(|_| {
            (Some(*line), format!("row `{label}`: waiting time is {ms:?}, expected whole ms"))
        })?;
        waiting_ms.insert(to.to_owned(), ms);
    }
    let initial = states[0].clone();
    Ok(Parts { name, initial, states, arcs: NamedArcs::Probabilities(probabilities), waiting_ms })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::table::{Next, Transitions};
    use super::*;

    const TWO: &str = "RUBiS Transition Table\tTwo\r\n\t\r\n\"To >>>\r\nFrom vvvv  \"\tHome\tItem\tTransition waiting time\r\n\
        Home\t0\t0.25\t3000\t1000\r\nItem\t0.9\t0\t7000\r\nBack probability\t0\t0.5\t0\r\nEnd of Session\t0.1\t0.2\t0\r\nnotes\r\n";

    #[test]
    fn columns_are_where_one_comes_from() {
        let table = Transitions::build(parse(TWO).unwrap_or_else(|error| panic!("{error:?}"))).unwrap();
        let share = |from, to| (table.probability(from, to) * 100.0).round();
        assert_eq!((share(0, Next::State(1)), share(0, Next::End), share(0, Next::Back)), (90.0, 10.0, 0.0));
        assert_eq!((share(1, Next::State(0)), share(1, Next::Back), share(1, Next::End)), (25.0, 50.0, 20.0));
        assert_eq!((table.waiting_ms(Next::State(1)), table.waiting_ms(Next::Back)), (Some(7000), Some(0)));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let message =
            |text: String| parse(&text).err().map(|(line, text)| format!("{line:?} {text}")).unwrap();
        assert!(
            message(TWO.replace("0.9", "often")).contains("Some(6) row `Item`, column `Home` is \"often\"")
        );
        assert!(message(TWO.replace("End of", "Start of")).contains("has no row `End of Session`"));
        assert!(message(TWO.replace("7000", "soon")).contains("waiting time is \"soon\""));
        assert!(message(TWO.replace("7000", "")).contains("has 2 cells; 2 and a waiting time are needed"));
        assert!(message("RUBiS\tx".into()).starts_with("Some(1) must begin with"));
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in "\\PC*", at in 0usize..300, byte in any::<u8>()) {
            let _ = parse(&text).map(|parts| Transitions::build(parts).is_ok());
            let mut bytes = TWO.as_bytes().to_vec();
            let place = at % bytes.len();
            bytes[place] = byte;
            let _ = parse(&String::from_utf8_lossy(&bytes)).map(|parts| Transitions::build(parts).is_ok());
        }
    }
}
