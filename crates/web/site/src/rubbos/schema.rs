//! The eight tables of RUBBoS.
//!
//! Times are whole seconds since 1970. `rating_initial` says where a rating came from; `token` is the browser's own mark, so
//! that a repeated request does nothing twice. A submission that was accepted or rejected stays, with its state.

use crate::schema::Kind::{Big, Int, Long, Serial, Text};
use crate::schema::{Table, column, maybe};

/// The tables, each after those that its foreign keys point at.
pub const TABLES: &[Table] =
    &[CATEGORIES, USERS, SUBMISSIONS, STORIES, OLD_STORIES, COMMENTS, OLD_COMMENTS, MODERATOR_LOG];

const CATEGORIES: Table = Table { name: "board_categories", ..Table::NAMED };

const USERS: Table = Table {
    name: "board_users",
    columns: &[
        column("id", Serial),
        column("firstname", Text(20)),
        column("lastname", Text(20)),
        column("nickname", Text(40)),
        column("password", Text(40)),
        column("email", Text(50)),
        column("rating", Int),
        column("rating_initial", Int),
        // 1: an author, who decides on submissions.
        column("access", Int),
        column("creation_date", Big),
        maybe("token", Text(64)),
    ],
    unique: &["nickname", "token"],
    ..Table::BARE
};

const SUBMISSIONS: Table = Table {
    name: "submissions",
    columns: &[
        column("id", Serial),
        column("title", Text(100)),
        column("body", Long),
        column("date_s", Big),
        column("writer", Big),
        column("category", Int),
        // 0 waits, 1 accepted, 2 rejected.
        column("state", Int),
        maybe("token", Text(64)),
    ],
    unique: &["token"],
    indexes: &["state, date_s"],
    foreign: &[("writer", "board_users", "id"), ("category", "board_categories", "id")],
    ..Table::BARE
};

const STORIES: Table = Table {
    name: "stories",
    columns: &[
        column("id", Serial),
        column("title", Text(100)),
        column("body", Long),
        column("date_s", Big),
        column("writer", Big),
        column("category", Int),
        maybe("submission", Big),
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
    columns: &[
        column("id", Serial),
        column("writer", Big),
        column("story", Big),
        // The comment that it answers; 0: the story itself.
        column("parent", Big),
        column("childs", Int),
        column("rating", Int),
        column("rating_initial", Int),
        column("date_s", Big),
        column("subject", Text(100)),
        column("comment", Long),
        maybe("token", Text(64)),
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

// The comment is one of two tables, which `old` tells apart, so that no foreign key can say it.
const MODERATOR_LOG: Table = Table {
    name: "moderator_log",
    columns: &[
        column("id", Serial),
        column("moderator", Big),
        column("comment", Big),
        column("old", Int),
        column("rating", Int),
        column("date_s", Big),
        maybe("token", Text(64)),
    ],
    unique: &["token"],
    indexes: &["comment"],
    foreign: &[("moderator", "board_users", "id")],
    ..Table::BARE
};
