//! Consistency checks of a site's database.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use crate::Error;
use crate::database::Connection;
use crate::schema::Table;

/// Violations of one rule that are listed; the others are only counted.
const NAMED: usize = 5;

/// A rule and its violations.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Rule {
    /// Its name.
    pub rule: &'static str,
    /// The rule in words.
    pub says: &'static str,
    /// Rows or orders checked.
    pub looked_at: u64,
    /// Number of violations.
    pub violations: u64,
    /// The first of them.
    pub examples: Vec<String>,
}

/// Something that a benchmark acknowledges, and the rule that it is never lost.
pub(crate) struct Acknowledgement {
    /// Kind, as in the log of the client.
    pub kind: &'static str,
    pub rule: &'static str,
    pub says: &'static str,
    /// Query of token, id and amount of all that the database has.
    pub sql: &'static str,
}

/// A rule whose violations a query lists.
pub(crate) struct Query {
    pub rule: &'static str,
    pub says: &'static str,
    /// Table of the checked rows.
    pub of: &'static str,
    pub sql: Cow<'static, str>,
    /// Names of the columns in messages.
    pub names: &'static [&'static str],
}

/// Rules and their violations.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Checked {
    /// Each rule.
    pub rules: Vec<Rule>,
}

impl Checked {
    /// Whether all rules hold.
    pub fn holds(&self) -> bool {
        self.rules.iter().all(|rule| rule.violations == 0)
    }

    /// Adds a rule with its violations.
    pub(crate) fn add(&mut self, rule: &'static str, says: &'static str, looked_at: u64, found: Vec<String>) {
        let violations = found.len() as u64;
        let examples = found.into_iter().take(NAMED).collect();
        self.rules.push(Rule { rule, says, looked_at, violations, examples });
    }

    /// Adds a rule whose violations a query lists.
    pub(crate) fn query(&mut self, connection: &mut dyn Connection, query: &Query) -> Result<(), Error> {
        let Query { rule, says, of, sql, names } = query;
        let looked_at = connection.run(&format!("SELECT COUNT(*) FROM {of}"), &[])?.int()? as u64;
        let rows = connection.run(sql, &[])?.rows;
        let tell = |row: &crate::database::Row| {
            let values = row.0.iter().map(|value| match value {
                crate::database::Value::Null => "none".to_owned(),
                crate::database::Value::Int(number) => number.to_string(),
                crate::database::Value::Text(text) => text.clone(),
            });
            let parts: Vec<String> =
                names.iter().zip(values).map(|(name, value)| format!("{name} {value}")).collect();
            parts.join(", ")
        };
        self.add(rule, says, looked_at, rows.iter().map(tell).collect());
        Ok(())
    }
}

impl Checked {
    /// Adds the rule that every foreign key of a table points at an existing row. It also holds where the database's own
    /// constraints were dropped or not enforced.
    pub(crate) fn orphans(&mut self, connection: &mut dyn Connection, table: &Table) -> Result<(), Error> {
        for (column, other, key) in table.foreign {
            let Table { name, .. } = table;
            let sql = format!(
                "SELECT child.{column}, COUNT(*) FROM {name} child LEFT JOIN {other} parent ON parent.{key} = child.{column} \
                 WHERE parent.{key} IS NULL AND child.{column} IS NOT NULL GROUP BY child.{column} ORDER BY 1"
            );
            let looked_at = connection.run(&format!("SELECT COUNT(*) FROM {name}"), &[])?.int()? as u64;
            let mut found = Vec::new();
            for row in connection.run(&sql, &[])?.rows {
                found.push(format!(
                    "{} rows of {name} have {column} {}, which {other} does not have",
                    row.int(1)?,
                    row.int(0)?
                ));
            }
            let says = "every foreign key points at an existing row";
            match self.rules.iter_mut().find(|rule| rule.rule == "orphans") {
                None => self.add("orphans", says, looked_at, found),
                Some(rule) => {
                    rule.looked_at += looked_at;
                    rule.violations += found.len() as u64;
                    rule.examples.extend(found);
                    rule.examples.truncate(NAMED);
                }
            }
        }
        Ok(())
    }
}

/// An acknowledged order or other change, from the log of the clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acknowledged {
    /// Kind of change.
    pub kind: String,
    /// The browser's token.
    pub token: String,
    /// The id from the site.
    pub id: i64,
    /// The total of the order in cents, or another value that the site stores.
    pub amount: i64,
}

/// Reads a log of acknowledged orders: lines `KIND TOKEN ID AMOUNT`. A last line that is cut off was never acknowledged: its
/// driver was killed while it wrote.
///
/// # Errors
/// The file cannot be read, or a line is malformed.
pub fn read_orders(path: &Path) -> Result<Vec<Acknowledged>, Error> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| Error::Io { path: path.display().to_string(), source })?;
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    let mut orders = Vec::new();
    for (line, number) in whole.lines().zip(1..) {
        let parsed = (|| {
            let mut fields = line.split(' ');
            let order = Acknowledged {
                kind: fields.next()?.to_owned(),
                token: fields.next()?.to_owned(),
                id: fields.next()?.parse().ok()?,
                amount: fields.next()?.parse().ok()?,
            };
            fields.next().is_none().then_some(order)
        })();
        orders.push(parsed.ok_or_else(|| {
            Error::Input(format!("{}:{number}: {line:?}, expected KIND TOKEN ID AMOUNT", path.display()))
        })?);
    }
    Ok(orders)
}

/// Compares acknowledged receipts of one kind with the result of a query: token, id, amount.
pub(crate) fn acknowledged(
    checked: &mut Checked,
    connection: &mut dyn Connection,
    orders: &[Acknowledged],
    Acknowledgement { kind, rule, says, sql }: &Acknowledgement,
) -> Result<(), Error> {
    let mut there: BTreeMap<String, Vec<(i64, i64)>> = BTreeMap::new();
    for row in connection.run(sql, &[])?.rows {
        there.entry(row.text(0)?.to_owned()).or_default().push((row.int(1)?, row.int(2)?));
    }
    let mut found = Vec::new();
    let mut count = 0;
    for order in orders.iter().filter(|order| order.kind == *kind) {
        count += 1;
        let Acknowledged { token, id, amount, .. } = order;
        match there.get(token).map(Vec::as_slice) {
            None => found.push(format!("token {token}: acknowledged as {id}, but missing")),
            Some([one]) if *one == (*id, *amount) => {}
            Some([(other, held)]) => found.push(format!(
                "token {token}: acknowledged as {id} of {amount}, stored as {other} of {held}"
            )),
            Some(several) => {
                found.push(format!("token {token}: acknowledged once, stored {} times", several.len()))
            }
        }
    }
    checked.add(rule, says, count, found);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_off_was_not_acknowledged() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "order a-1 7 1234\norder a-2 8 99\norder a-3 9").unwrap();
        let orders = read_orders(file.path()).unwrap();
        assert_eq!(orders.len(), 2);
        assert_eq!((orders[1].token.as_str(), orders[1].id, orders[1].amount), ("a-2", 8, 99));
        std::fs::write(file.path(), "order a-1\n").unwrap();
        assert!(read_orders(file.path()).unwrap_err().to_string().contains(":1: \"order a-1\""));
    }
}
