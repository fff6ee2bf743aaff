//! Initial content of RUBBoS: a share of the published database (Amza et al., 2002) with 500,000 users, one in ten of
//! them an author; two years of 15 to 25 stories a day, each with 20 to 50 comments. The last month is in the tables of
//! new stories, the rest in those of old stories. The number of pending submissions is our choice.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::account;
use crate::database::{Row, Value};
use crate::population::{DAY_S, MADE_AT_S, Population, Share, int, row};
use crate::schema::Table;
use crate::text::{digsyl, row_generator, words};

/// Categories.
pub const CATEGORIES: u64 = 21;
/// Words of which titles and subjects are made, and that are searched for.
pub const DICTIONARY: u64 = 1000;
/// Every author is the first of ten users.
pub const USERS_PER_AUTHOR: u64 = 10;
/// The id of a comment is computed from the story and the position in its thread.
pub(super) const COMMENT_IDS_PER_STORY: u64 = 64;

/// Initial content of a RUBBoS site.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Board(pub Share);

struct Comment {
    writer: u64,
    /// The place of the comment that it answers, from 1; 0: the story.
    parent: u64,
    rating: i64,
}

/// A word of the dictionary, in small letters.
pub fn word(number: u64) -> String {
    digsyl(number % DICTIONARY, 3).to_lowercase()
}

/// Words of the dictionary.
pub fn title(rng: &mut ChaCha8Rng, least: usize, most: usize) -> String {
    let count = rng.random_range(least..=most);
    (0..count).map(|_| word(rng.random_range(0..DICTIONARY))).collect::<Vec<_>>().join(" ")
}

impl Board {
    /// Users.
    pub fn users(&self) -> u64 {
        self.0.of(500e3).max(USERS_PER_AUTHOR)
    }

    /// Stories of the last month; their ids follow those of the old ones.
    pub fn stories(&self) -> u64 {
        self.0.of(600.0).max(10)
    }

    /// Older stories.
    pub fn old_stories(&self) -> u64 {
        self.0.of(14e3)
    }

    /// Submissions that wait.
    pub fn submissions(&self) -> u64 {
        self.0.of(100.0).max(10)
    }

    fn thread(&self, story: u64) -> Vec<Comment> {
        let mut rng = row_generator(self.0.seed, "thread", story);
        let count = rng.random_range(20..=50);
        let comment = |place: u64, rng: &mut ChaCha8Rng| Comment {
            writer: rng.random_range(1..=self.users()),
            parent: if place == 1 || rng.random_bool(0.4) { 0 } else { rng.random_range(1..place) },
            rating: rng.random_range(-1..=5),
        };
        (1..=count).map(|place| comment(place, &mut rng)).collect()
    }

    fn story(&self, id: u64) -> Row {
        let mut rng = row_generator(self.0.seed, "stories", id);
        let writer = rng.random_range(1..=self.users());
        row([
            int(id),
            title(&mut rng, 3, 8).into(),
            words(&mut rng, 200, 4000).into(),
            Value::Int(self.date(id)),
            int(writer),
            Value::Int(rng.random_range(1..=CATEGORIES as i64)),
            Value::Null,
        ])
    }

    /// When a story was published: they are spread evenly over two years.
    fn date(&self, story: u64) -> i64 {
        let all = self.old_stories() + self.stories();
        MADE_AT_S - 730 * DAY_S * (all - story) as i64 / all as i64
    }

    fn comments(&self, story: u64, to: &mut Vec<Row>) {
        let thread = self.thread(story);
        let mut rng = row_generator(self.0.seed, "comments of a story", story);
        let id = |place: u64| story * COMMENT_IDS_PER_STORY + place;
        for (comment, place) in thread.iter().zip(1..) {
            let childs = thread.iter().filter(|other| other.parent == place).count();
            to.push(row([
                int(id(place)),
                int(comment.writer),
                int(story),
                int(if comment.parent == 0 { 0 } else { id(comment.parent) }),
                Value::Int(childs as i64),
                Value::Int(comment.rating),
                Value::Int(comment.rating),
                Value::Int(self.date(story) + 60 * place as i64),
                title(&mut rng, 1, 5).into(),
                words(&mut rng, 50, 1000).into(),
                Value::Null,
            ]));
        }
    }

    fn user(&self, id: u64) -> Row {
        let mut rng = row_generator(self.0.seed, "board_users", id);
        let rating = rng.random_range(-5..=50);
        let account = account::of_population(id, &mut rng);
        row([int(id)].into_iter().chain(account).chain([
            Value::Int(rating),
            Value::Int(rating),
            Value::Int(i64::from(id % USERS_PER_AUTHOR == 1)),
            Value::Int(MADE_AT_S - rng.random_range(0..=730 * DAY_S)),
            Value::Null,
        ]))
    }

    fn submission(&self, id: u64) -> Row {
        let mut rng = row_generator(self.0.seed, "submissions", id);
        row([
            int(id),
            title(&mut rng, 3, 8).into(),
            words(&mut rng, 200, 4000).into(),
            Value::Int(MADE_AT_S - rng.random_range(0..=DAY_S)),
            int(rng.random_range(1..=self.users())),
            Value::Int(rng.random_range(1..=CATEGORIES as i64)),
            Value::Int(0),
            Value::Null,
        ])
    }
}

impl Population for Board {
    fn tables(&self) -> &'static [Table] {
        super::schema::TABLES
    }

    fn units(&self, table: &str) -> u64 {
        match table {
            "board_categories" => CATEGORIES,
            "board_users" => self.users(),
            "submissions" => self.submissions(),
            "stories" | "story_comments" => self.stories(),
            "old_stories" | "old_comments" => self.old_stories(),
            _ => 0,
        }
    }

    fn rows(&self, table: &str, unit: u64, to: &mut Vec<Row>) {
        match table {
            "board_categories" => to.push(row([int(unit), format!("category {unit}").into()])),
            "board_users" => to.push(self.user(unit)),
            "submissions" => to.push(self.submission(unit)),
            "stories" => to.push(self.story(self.old_stories() + unit)),
            "old_stories" => to.push(self.story(unit)),
            "story_comments" => self.comments(self.old_stories() + unit, to),
            "old_comments" => self.comments(unit, to),
            _ => {}
        }
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let counts =
            [("users", self.users()), ("stories", self.stories()), ("old_stories", self.old_stories())];
        self.0.facts("rubbos", &counts)
    }
}
