//! Pages that change data: registration, comments, ratings, submissions, decisions.

use serde_json::{Value, json};

use super::look::tables_of;
use super::populate::CATEGORIES;
use super::user::{author, known};
use crate::database::Connection;
use crate::http::{Context, Form};
use crate::once::once;
use crate::{Error, account};

/// Ratings of comments stay between these.
const LEAST_RATING: i64 = -1;
const LARGEST_RATING: i64 = 5;

pub(super) fn register(form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
    let token = form.text("token", 64)?;
    let mut parameters = account::registered(form)?.to_vec();
    parameters.extend([context.now_s.into(), token.into()]);
    once(
        context,
        token,
        "SELECT id, access FROM board_users WHERE token = ?",
        |_| Ok(()),
        |connection| {
            let sql = "INSERT INTO board_users (firstname, lastname, nickname, password, email, rating, rating_initial, access, \
                   creation_date, token) VALUES (?, ?, ?, ?, ?, 0, 0, 0, ?, ?) RETURNING id";
            Ok((connection.run(sql, &parameters)?.int()?, 0))
        },
    )
}

/// A comment on a story, or on a comment, which then has one more.
pub(super) fn comment(form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
    let (token, story) = (form.text("token", 64)?, form.id("story")?);
    let parent = form.maybe_id("comment")?.unwrap_or(0);
    let (subject, text) = (form.text("subject", 100)?, form.text("text", 20_000)?);
    let now_s = context.now_s;
    let comments = tables_of(context.connection, story)?.comments;
    let find = format!("SELECT id, story FROM {comments} WHERE token = ?");
    once(
        context,
        token,
        &find,
        |_| Ok(()),
        |connection| {
            let writer = known(connection, form)?;
            if parent > 0 {
                let sql = format!("UPDATE {comments} SET childs = childs + 1 WHERE id = ? AND story = ?");
                if connection.run(&sql, &[parent.into(), story.into()])?.affected == 0 {
                    return Err(Error::absent(format!("no comment {parent} on story {story}")));
                }
            }
            let sql = format!(
                "INSERT INTO {comments} (writer, story, parent, childs, rating, rating_initial, date_s, subject, comment, token) \
             VALUES (?, ?, ?, 0, 0, 0, ?, ?, ?, ?) RETURNING id"
            );
            let parameters = [
                writer.into(),
                story.into(),
                parent.into(),
                now_s.into(),
                subject.into(),
                text.into(),
                token.into(),
            ];
            Ok((connection.run(&sql, &parameters)?.int()?, story))
        },
    )
}

/// A rating: -1, 0 or 1, limited so that the comment's rating stays within -1 to 5. Each rating is logged.
pub(super) fn moderate(form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
    let (token, story, comment) = (form.text("token", 64)?, form.id("story")?, form.id("comment")?);
    let rating = form.int("rating", -1, 1)?;
    let now_s = context.now_s;
    let tables = tables_of(context.connection, story)?;
    let read =
        format!("SELECT rating, writer FROM {} WHERE id = ? AND story = ? FOR UPDATE", tables.comments);
    let read = |connection: &mut dyn Connection| -> Result<(i64, i64), Error> {
        let found = connection.run(&read, &[comment.into(), story.into()])?;
        let row =
            found.first().ok_or_else(|| Error::absent(format!("no comment {comment} on story {story}")))?;
        Ok((row.int(0)?, row.int(1)?))
    };
    let lock = |connection: &mut dyn Connection| read(connection).map(drop);
    once(context, token, "SELECT id, rating FROM moderator_log WHERE token = ?", lock, |connection| {
        let moderator = known(connection, form)?;
        let (held, writer) = read(connection)?;
        let change = (held + rating).clamp(LEAST_RATING, LARGEST_RATING) - held;
        let sql = format!("UPDATE {} SET rating = rating + ? WHERE id = ?", tables.comments);
        connection.run(&sql, &[change.into(), comment.into()])?;
        connection.run(
            "UPDATE board_users SET rating = rating + ? WHERE id = ?",
            &[change.into(), writer.into()],
        )?;
        let sql = "INSERT INTO moderator_log (moderator, comment, old, rating, date_s, token) VALUES (?, ?, ?, ?, ?, ?) RETURNING id";
        let parameters =
            [moderator.into(), comment.into(), tables.old.into(), change.into(), now_s.into(), token.into()];
        Ok((connection.run(sql, &parameters)?.int()?, change))
    })
}

pub(super) fn submit(form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
    let token = form.text("token", 64)?;
    let (title, body) = (form.text("title", 100)?, form.text("body", 40_000)?);
    let category = form.int("category", 1, CATEGORIES as i64)?;
    let now_s = context.now_s;
    once(
        context,
        token,
        "SELECT id, category FROM submissions WHERE token = ?",
        |_| Ok(()),
        |connection| {
            let writer = known(connection, form)?;
            let sql = "INSERT INTO submissions (title, body, date_s, writer, category, state, token) VALUES (?, ?, ?, ?, ?, 0, ?) \
                   RETURNING id";
            let parameters =
                [title.into(), body.into(), now_s.into(), writer.into(), category.into(), token.into()];
            Ok((connection.run(sql, &parameters)?.int()?, category))
        },
    )
}

/// A submission becomes a story or is rejected. The first decision is final.
pub(super) fn decide(form: &Form, context: &mut Context<'_>, accept: bool) -> Result<Value, Error> {
    let submission = form.id("submission")?;
    let now_s = context.now_s;
    context.transaction(|connection| {
        author(connection, form)?;
        let sql = "SELECT state FROM submissions WHERE id = ? FOR UPDATE";
        let found = connection.run(sql, &[submission.into()])?;
        let state =
            found.first().ok_or_else(|| Error::absent(format!("no submission {submission}")))?.int(0)?;
        if state != 0 {
            return Ok(json!({"submission": submission, "state": state, "changed": false}));
        }
        let state = if accept { 1i64 } else { 2 };
        if accept {
            let sql = "INSERT INTO stories (title, body, date_s, writer, category, submission) \
                       SELECT title, body, ?, writer, category, id FROM submissions WHERE id = ?";
            connection.run(sql, &[now_s.into(), submission.into()])?;
        }
        connection
            .run("UPDATE submissions SET state = ? WHERE id = ?", &[state.into(), submission.into()])?;
        Ok(json!({"submission": submission, "state": state, "changed": true}))
    })
}
