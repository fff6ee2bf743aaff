//! Pages that only read data.

use serde_json::{Value, json};

use crate::Error;
use crate::database::Connection;
use crate::http::Form;
use crate::list::{PER_PAGE, limits, list, number, object, query};

const STORY: &str = "s.id, s.title, s.date_s, u.nickname";
const STORY_NAMES: &[&str] = &["id", "title", "date", "writer"];

/// The tables of a story and its comments.
pub(super) struct Tables {
    pub stories: &'static str,
    pub comments: &'static str,
    pub old: i64,
}

const NEW: Tables = Tables { stories: "stories", comments: "story_comments", old: 0 };
const OLD: Tables = Tables { stories: "old_stories", comments: "old_comments", old: 1 };

/// The tables of a story.
pub(super) fn tables_of(connection: &mut dyn Connection, story: i64) -> Result<Tables, Error> {
    for tables in [NEW, OLD] {
        let sql = format!("SELECT id FROM {} WHERE id = ?", tables.stories);
        if connection.run(&sql, &[story.into()])?.first().is_some() {
            return Ok(tables);
        }
    }
    Err(Error::absent(format!("no story {story}")))
}

pub(super) fn of_the_day(connection: &mut dyn Connection) -> Result<Value, Error> {
    let sql = format!(
        "SELECT {STORY} FROM stories s JOIN board_users u ON u.id = s.writer ORDER BY s.date_s DESC, s.id DESC LIMIT 10"
    );
    Ok(json!({"stories": query(connection, &sql, &[], STORY_NAMES)?}))
}

pub(super) fn categories(connection: &mut dyn Connection) -> Result<Value, Error> {
    let sql = "SELECT id, name FROM board_categories ORDER BY id";
    Ok(json!({"categories": query(connection, sql, &[], &["id", "name"])?}))
}

pub(super) fn in_category(connection: &mut dyn Connection, form: &Form) -> Result<Value, Error> {
    let (category, number) = (form.id("category")?, number(form)?);
    let sql = format!(
        "SELECT {STORY} FROM stories s JOIN board_users u ON u.id = s.writer WHERE s.category = ? \
         ORDER BY s.date_s DESC, s.id DESC LIMIT ? OFFSET ?"
    );
    let [limit, offset] = limits(number);
    let rows = query(connection, &sql, &[category.into(), limit, offset], STORY_NAMES)?;
    Ok(json!({"category": category, "number": number, "stories": rows}))
}

/// Stories of a day (seconds since 1970).
pub(super) fn older(connection: &mut dyn Connection, form: &Form) -> Result<Value, Error> {
    let (since, number) = (form.int("since", 0, 1 << 40)?, number(form)?);
    let sql = format!(
        "SELECT {STORY} FROM old_stories s JOIN board_users u ON u.id = s.writer WHERE s.date_s >= ? AND s.date_s < ? \
         ORDER BY s.date_s DESC, s.id DESC LIMIT ? OFFSET ?"
    );
    let until = since + 86_400;
    let [limit, offset] = limits(number);
    let rows = query(connection, &sql, &[since.into(), until.into(), limit, offset], STORY_NAMES)?;
    Ok(json!({"since": since, "number": number, "stories": rows}))
}

/// A story and the comments that answer it.
pub(super) fn story(connection: &mut dyn Connection, form: &Form) -> Result<Value, Error> {
    let id = form.id("story")?;
    let tables = tables_of(connection, id)?;
    let sql = format!(
        "SELECT {STORY}, s.body, s.category FROM {} s JOIN board_users u ON u.id = s.writer WHERE s.id = ?",
        tables.stories
    );
    let found = connection.run(&sql, &[id.into()])?;
    let row = found.first().ok_or_else(|| Error::absent(format!("no story {id}")))?;
    let mut answer = object(row, &["story", "title", "date", "writer", "body", "category"]);
    answer["comments"] = children(connection, &tables, id, 0)?;
    Ok(answer)
}

fn children(
    connection: &mut dyn Connection,
    tables: &Tables,
    story: i64,
    parent: i64,
) -> Result<Value, Error> {
    let sql = format!(
        "SELECT c.id, c.subject, c.rating, c.childs, c.date_s, u.nickname FROM {} c JOIN board_users u ON u.id = c.writer \
         WHERE c.story = ? AND c.parent = ? ORDER BY c.rating DESC, c.id",
        tables.comments
    );
    let names = ["id", "subject", "rating", "childs", "date", "writer"];
    query(connection, &sql, &[story.into(), parent.into()], &names)
}

/// A comment and the comments that answer it; without one, those that answer the story.
pub(super) fn comment(connection: &mut dyn Connection, form: &Form) -> Result<Value, Error> {
    let (story, id) = (form.id("story")?, form.maybe_id("comment")?);
    let tables = tables_of(connection, story)?;
    let mut answer = match id {
        None => json!({"story": story}),
        Some(id) => {
            let sql = format!(
                "SELECT c.story, c.id, c.subject, c.comment, c.rating, c.parent, u.nickname FROM {} c \
                 JOIN board_users u ON u.id = c.writer WHERE c.id = ? AND c.story = ?",
                tables.comments
            );
            let found = connection.run(&sql, &[id.into(), story.into()])?;
            let row =
                found.first().ok_or_else(|| Error::absent(format!("no comment {id} on story {story}")))?;
            object(row, &["story", "comment", "subject", "text", "rating", "parent", "writer"])
        }
    };
    answer["comments"] = children(connection, &tables, story, id.unwrap_or(0))?;
    Ok(answer)
}

/// `%WORD%`: as in the original no index helps.
fn pattern(form: &Form) -> Result<String, Error> {
    let word = form.text("search", 40)?;
    if word.contains(['%', '_', '\\']) {
        return Err(Error::bad("parameter `search` may not hold %, _ or \\"));
    }
    Ok(format!("%{word}%"))
}

pub(super) fn search_stories(connection: &mut dyn Connection, form: &Form) -> Result<Value, Error> {
    let (pattern, number) = (pattern(form)?, number(form)?);
    // Stories of the last month; where they are few, the older ones, too.
    let mut rows = Vec::new();
    for table in ["stories", "old_stories"] {
        let sql = format!(
            "SELECT {STORY} FROM {table} s JOIN board_users u ON u.id = s.writer WHERE s.title LIKE ? \
             ORDER BY s.date_s DESC, s.id DESC LIMIT ? OFFSET ?"
        );
        let [limit, offset] = limits(number);
        rows.extend(connection.run(&sql, &[pattern.as_str().into(), limit, offset])?.rows);
        if rows.len() as i64 >= PER_PAGE {
            break;
        }
    }
    rows.truncate(PER_PAGE as usize);
    Ok(json!({"number": number, "stories": list(&rows, STORY_NAMES)}))
}

pub(super) fn search_comments(connection: &mut dyn Connection, form: &Form) -> Result<Value, Error> {
    let (pattern, number) = (pattern(form)?, number(form)?);
    let sql = "SELECT c.id, c.story, c.subject, c.date_s, u.nickname FROM story_comments c \
               JOIN board_users u ON u.id = c.writer WHERE c.subject LIKE ? ORDER BY c.date_s DESC, c.id DESC LIMIT ? OFFSET ?";
    let [limit, offset] = limits(number);
    let rows = query(
        connection,
        sql,
        &[pattern.into(), limit, offset],
        &["id", "story", "subject", "date", "writer"],
    )?;
    Ok(json!({"number": number, "comments": rows}))
}

pub(super) fn search_users(connection: &mut dyn Connection, form: &Form) -> Result<Value, Error> {
    let (pattern, number) = (pattern(form)?, number(form)?);
    let sql = "SELECT id, nickname, rating FROM board_users WHERE nickname LIKE ? ORDER BY nickname LIMIT ? OFFSET ?";
    let [limit, offset] = limits(number);
    let rows = query(connection, sql, &[pattern.into(), limit, offset], &["id", "nickname", "rating"])?;
    Ok(json!({"number": number, "users": rows}))
}

/// The oldest submissions that wait.
pub(super) fn submissions(connection: &mut dyn Connection) -> Result<Value, Error> {
    let sql = "SELECT s.id, s.title, s.date_s, u.nickname, s.body FROM submissions s JOIN board_users u ON u.id = s.writer \
               WHERE s.state = 0 ORDER BY s.date_s, s.id LIMIT 10";
    let rows = query(connection, sql, &[], &["id", "title", "date", "writer", "body"])?;
    Ok(json!({"submissions": rows}))
}
