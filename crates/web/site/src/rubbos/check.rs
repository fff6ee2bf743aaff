//! What must hold in a bulletin board, whatever was said and whoever was killed.

use crate::Error;
use crate::check::{Acknowledged, Checked, acknowledged};
use crate::database::Connection;
use crate::load;

/// Checks the board, and that everything acknowledged is there once.
///
/// # Errors
/// The database fails, or holds no board.
pub fn check(connection: &mut dyn Connection, orders: &[Acknowledged]) -> Result<Checked, Error> {
    load::loaded_facts(connection, "rubbos")?;
    let mut checked = Checked::default();
    for (kind, rule, says, sql) in [
        (
            "comment",
            "acknowledged-comments",
            "every acknowledged comment is there exactly once, with its id and story",
            "SELECT token, id, story FROM story_comments WHERE token IS NOT NULL \
             UNION ALL SELECT token, id, story FROM old_comments WHERE token IS NOT NULL",
        ),
        (
            "rating",
            "acknowledged-ratings",
            "every acknowledged rating is there exactly once, with its id and change",
            "SELECT token, id, rating FROM moderator_log WHERE token IS NOT NULL",
        ),
        (
            "story",
            "acknowledged-stories",
            "every acknowledged submission is there exactly once, with its id and category",
            "SELECT token, id, category FROM submissions WHERE token IS NOT NULL",
        ),
        (
            "user",
            "acknowledged-users",
            "every acknowledged user is there exactly once, with its id",
            "SELECT token, id, access FROM board_users WHERE token IS NOT NULL",
        ),
    ] {
        acknowledged(&mut checked, connection, orders, (kind, rule, says), sql)?;
    }
    for (comments, old, childs, ratings) in
        [("story_comments", 0, "childs", "ratings"), ("old_comments", 1, "old-childs", "old-ratings")]
    {
        checked.query(
            connection,
            (childs, "a comment's count of answers is that of the comments that answer it"),
            comments,
            &format!(
                "SELECT c.id, c.childs, a.number FROM {comments} c LEFT JOIN \
                 (SELECT parent, COUNT(*) AS number FROM {comments} WHERE parent > 0 GROUP BY parent) a ON a.parent = c.id \
                 WHERE c.childs <> COALESCE(a.number, 0) ORDER BY c.id"
            ),
            &["comment", "count", "answers"],
        )?;
        checked.query(
            connection,
            (ratings, "a comment's rating is what it was at first and what moderators changed, from -1 to 5"),
            comments,
            &format!(
                "SELECT c.id, c.rating, c.rating_initial, m.total FROM {comments} c LEFT JOIN \
                 (SELECT comment, SUM(rating) AS total FROM moderator_log WHERE old = {old} GROUP BY comment) m \
                 ON m.comment = c.id \
                 WHERE c.rating < -1 OR c.rating > 5 OR c.rating <> c.rating_initial + COALESCE(m.total, 0) ORDER BY c.id"
            ),
            &["comment", "rating", "at first", "changed by"],
        )?;
    }
    let mut query =
        |rule, of: &str, sql: &str, names: &[&str]| checked.query(connection, rule, of, sql, names);
    query(
        (
            "user-ratings",
            "a user's rating is what it was at first and what moderators changed in that user's comments",
        ),
        "board_users",
        "SELECT u.id, u.rating, u.rating_initial, m.total FROM board_users u LEFT JOIN \
         (SELECT writer, SUM(change_by) AS total FROM \
          (SELECT c.writer AS writer, l.rating AS change_by FROM moderator_log l JOIN story_comments c ON c.id = l.comment \
           WHERE l.old = 0 UNION ALL \
           SELECT c.writer, l.rating FROM moderator_log l JOIN old_comments c ON c.id = l.comment WHERE l.old = 1) both_kinds \
          GROUP BY writer) m ON m.writer = u.id WHERE u.rating <> u.rating_initial + COALESCE(m.total, 0) ORDER BY u.id",
        &["user", "rating", "at first", "changed by"],
    )?;
    query(
        ("decisions", "a submission that was accepted is a story, and no other is"),
        "submissions",
        "SELECT b.id, b.state, s.id FROM submissions b LEFT JOIN stories s ON s.submission = b.id \
         WHERE (b.state = 1) <> (s.id IS NOT NULL) ORDER BY b.id",
        &["submission", "state", "story"],
    )?;
    for table in super::schema::TABLES {
        checked.orphans(connection, table)?;
    }
    Ok(checked)
}
