//! Consistency rules of RUBBoS.

use crate::Error;
use crate::check::{Acknowledgement, Query};
use crate::facts::Facts;

/// Changes that the site acknowledges.
pub(super) const ACKNOWLEDGEMENTS: &[Acknowledgement] = &[
    Acknowledgement {
        kind: "comment",
        rule: "acknowledged-comments",
        says: "every acknowledged comment is there exactly once, with its id and story",
        sql: "SELECT token, id, story FROM story_comments WHERE token IS NOT NULL \
             UNION ALL SELECT token, id, story FROM old_comments WHERE token IS NOT NULL",
    },
    Acknowledgement {
        kind: "rating",
        rule: "acknowledged-ratings",
        says: "every acknowledged rating is there exactly once, with its id and change",
        sql: "SELECT token, id, rating FROM moderator_log WHERE token IS NOT NULL",
    },
    Acknowledgement {
        kind: "story",
        rule: "acknowledged-stories",
        says: "every acknowledged submission is there exactly once, with its id and category",
        sql: "SELECT token, id, category FROM submissions WHERE token IS NOT NULL",
    },
    Acknowledgement {
        kind: "user",
        rule: "acknowledged-users",
        says: "every acknowledged user is there exactly once, with its id",
        sql: "SELECT token, id, access FROM board_users WHERE token IS NOT NULL",
    },
];

/// Other consistency rules.
pub(super) fn rules(_: &Facts) -> Result<Vec<Query>, Error> {
    let mut rules = Vec::new();
    for (comments, old, childs, ratings) in
        [("story_comments", 0, "childs", "ratings"), ("old_comments", 1, "old-childs", "old-ratings")]
    {
        rules.push(Query {
            rule: childs,
            says: "a comment's count of answers is that of the comments that answer it",
            of: comments,
            sql: format!(
                "SELECT c.id, c.childs, a.number FROM {comments} c \
                 LEFT JOIN (SELECT parent, COUNT(*) AS number FROM {comments} WHERE parent > 0 \
                 GROUP BY parent) a ON a.parent = c.id WHERE c.childs <> COALESCE(a.number, 0) \
                 ORDER BY c.id"
            )
            .into(),
            names: &["comment", "count", "answers"],
        });
        rules.push(Query {
            rule: ratings,
            says: "a comment's rating is what it was at first and what moderators changed, from -1 to 5",
            of: comments,
            sql: format!(
                "SELECT c.id, c.rating, c.rating_initial, m.total FROM {comments} c \
                 LEFT JOIN (SELECT comment, SUM(rating) AS total FROM moderator_log WHERE old = {old} \
                 GROUP BY comment) m ON m.comment = c.id WHERE c.rating < -1 OR c.rating > 5 \
                 OR c.rating <> c.rating_initial + COALESCE(m.total, 0) ORDER BY c.id"
            )
            .into(),
            names: &["comment", "rating", "at first", "changed by"],
        });
    }
    rules.extend([
        Query {
            rule: "user-ratings",
            says: "a user's rating is its first value plus what moderators changed in the user's comments",
            of: "board_users",
            sql: "SELECT u.id, u.rating, u.rating_initial, m.total FROM board_users u \
                 LEFT JOIN (SELECT writer, SUM(change_by) AS total FROM \
                 (SELECT c.writer AS writer, l.rating AS change_by FROM moderator_log l \
                 JOIN story_comments c ON c.id = l.comment WHERE l.old = 0 \
                 UNION ALL SELECT c.writer, l.rating FROM moderator_log l \
                 JOIN old_comments c ON c.id = l.comment WHERE l.old = 1) both_kinds \
                 GROUP BY writer) m ON m.writer = u.id \
                 WHERE u.rating <> u.rating_initial + COALESCE(m.total, 0) ORDER BY u.id"
                .into(),
            names: &["user", "rating", "at first", "changed by"],
        },
        Query {
            rule: "decisions",
            says: "a submission that was accepted is a story, and no other is",
            of: "submissions",
            sql: "SELECT b.id, b.state, s.id FROM submissions b \
                 LEFT JOIN stories s ON s.submission = b.id WHERE (b.state = 1) <> (s.id IS NOT NULL) \
                 ORDER BY b.id"
                .into(),
            names: &["submission", "state", "story"],
        },
    ]);
    Ok(rules)
}
