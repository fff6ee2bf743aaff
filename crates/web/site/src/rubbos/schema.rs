//! The eight tables of RUBBoS.
//!
//! Times are whole seconds since 1970. `rating_initial` is the rating before the run, for checks; `token` identifies a
//! browser's request: a repeated request has no second effect. An accepted or rejected submission is kept with its state.

use crate::schema::Kind::{Big, Int, Long, Serial, Text};
use crate::schema::{Table, columns};

/// The tables, each after the tables that its foreign keys reference.
pub const TABLES: &[Table] =
    &[CATEGORIES, USERS, SUBMISSIONS, STORIES, OLD_STORIES, COMMENTS, OLD_COMMENTS, MODERATOR_LOG];

const CATEGORIES: Table = Table { name: "board_categories", ..Table::NAMED };

const USERS: Table = Table {
    name: "board_users",
    columns: columns![
        id: Serial, firstname: Text(20), lastname: Text(20), nickname: Text(40), password: Text(40),
        email: Text(50), rating: Int, rating_initial: Int,
        // 1: an author, who decides on submissions.
        access: Int, creation_date: Big; token: Text(64)
    ],
    unique: &["nickname", "token"],
    ..Table::BARE
};

const SUBMISSIONS: Table = Table {
    name: "submissions",
    columns: columns![
        id: Serial, title: Text(100), body: Long, date_s: Big, writer: Big, category: Int,
        // 0 waits, 1 accepted, 2 rejected.
        state: Int; token: Text(64)
    ],
    unique: &["token"],
    indexes: &["state, date_s"],
    foreign: &[("writer", "board_users", "id"), ("category", "board_categories", "id")],
    ..Table::BARE
};

const STORIES: Table = Table {
    name: "stories",
    columns: columns![
        id: Serial, title: Text(100), body: Long, date_s: Big, writer: Big, category: Int; submission: Big
    ],
    unique: &["submission"],
    indexes: &["date_s", "category, date_s"],
    foreign: &[
        ("writer", "board_users", "id"),
        ("category", "board_categories", "id"),
        ("submission", "submissions", "id"),
    ],
    ..Table::BARE
};

const OLD_STORIES: Table = Table { name: "old_stories", ..STORIES };

const COMMENTS: Table = Table {
    name: "story_comments",
    columns: columns![
        id: Serial, writer: Big, story: Big,
        // The comment that it answers; 0: the story itself.
        parent: Big, childs: Int, rating: Int, rating_initial: Int, date_s: Big, subject: Text(100),
        comment: Long; token: Text(64)
    ],
    unique: &["token"],
    indexes: &["story, parent", "writer"],
    foreign: &[("writer", "board_users", "id"), ("story", "stories", "id")],
    ..Table::BARE
};

const OLD_COMMENTS: Table = Table {
    name: "old_comments",
    foreign: &[("writer", "board_users", "id"), ("story", "old_stories", "id")],
    ..COMMENTS
};

// The comment is in one of two tables, selected by `old`; a foreign key cannot express that.
const MODERATOR_LOG: Table = Table {
    name: "moderator_log",
    columns: columns![
        id: Serial, moderator: Big, comment: Big, old: Int, rating: Int, date_s: Big; token: Text(64)
    ],
    unique: &["token"],
    indexes: &["comment"],
    foreign: &[("moderator", "board_users", "id")],
    ..Table::BARE
};
