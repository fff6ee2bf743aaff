//! Client of RUBBoS: parameters from the stories, comments and submissions of the last pages.

use rand::RngExt;
use rand::seq::IndexedRandom;
use serde_json::Value;

use super::populate::{CATEGORIES, COMMENT_IDS_PER_STORY, DICTIONARY, USERS_PER_AUTHOR, title, word};
use crate::browse::{Asked, Receipt, Session, Visitor};
use crate::facts::{self, Facts};
use crate::population::MADE_AT_S;
use crate::text::words;
use crate::{Error, account};

/// A reader and writer of a bulletin board.
pub(super) struct Poster {
    session: Session,
    users: i64,
    /// Stories that there were at first.
    all_stories: i64,
    old_stories: i64,
    user: i64,
    author: i64,
    stories: Vec<i64>,
    /// Comments that were seen, with their stories.
    comments: Vec<(i64, i64)>,
    submissions: Vec<i64>,
    story: i64,
    comment: Option<i64>,
    category: i64,
    since: i64,
    search: u64,
    number: i64,
}

impl Poster {
    pub(super) fn new(facts: &Facts, session: Session) -> Result<Self, Error> {
        let number = |name| facts::number(facts, name).map(|number| number.max(1));
        let old_stories = number("old_stories")?;
        Ok(Poster {
            session,
            users: number("users")?,
            all_stories: old_stories + number("stories")?,
            old_stories,
            user: 1,
            author: 1,
            stories: Vec::new(),
            comments: Vec::new(),
            submissions: Vec::new(),
            story: 1,
            comment: None,
            category: 1,
            since: 0,
            search: 0,
            number: 0,
        })
    }

    /// Whether the list continues: the last page belongs to it and was not empty.
    fn next_of_list(&mut self, page: &str, empty: bool) -> bool {
        let again = self.session.last == page && !empty;
        self.number = if again { self.number + 1 } else { 0 };
        again
    }

    fn search(&mut self, page: &str, asked: &mut Asked) {
        if !self.next_of_list(page, self.stories.is_empty() && self.comments.is_empty()) {
            self.search = self.session.rng.random_range(0..DICTIONARY);
        }
        let text = match page {
            "SearchInUsers" => format!("user{}", self.search),
            _ => word(self.search),
        };
        asked.put("search", &text).put_maybe("number", Some(self.number));
    }

    fn choose_story(&mut self) {
        let any = self.old_stories + self.session.rng.random_range(1..=self.all_stories - self.old_stories);
        self.story = self.stories.choose(&mut self.session.rng).copied().unwrap_or(any);
        self.comment = None;
    }

    /// A comment that was seen, and its story; without one the story itself.
    fn choose_comment(&mut self) {
        if let Some((story, comment)) = self.comments.choose(&mut self.session.rng) {
            (self.story, self.comment) = (*story, Some(*comment));
        }
    }

    fn this(&self, asked: &mut Asked) {
        asked.put_maybe("story", Some(self.story)).put_maybe("comment", self.comment);
    }
}

impl Visitor for Poster {
    fn begin(&mut self) {
        self.user = self.session.rng.random_range(1..=self.users);
        let authors = (self.users + USERS_PER_AUTHOR as i64 - 1) / USERS_PER_AUTHOR as i64;
        self.author = 1 + USERS_PER_AUTHOR as i64 * self.session.rng.random_range(0..authors);
        self.stories.clear();
        self.comments.clear();
        self.submissions.clear();
        self.choose_story();
        self.category = self.session.rng.random_range(1..=CATEGORIES as i64);
        self.number = 0;
        self.session.last.clear();
    }

    fn ask(&mut self, page: &str, asked: &mut Asked) {
        match page {
            "BrowseStoriesInCategory" => {
                if !self.next_of_list(page, self.stories.is_empty()) {
                    self.category = self.session.rng.random_range(1..=CATEGORIES as i64);
                }
                asked.put_maybe("category", Some(self.category)).put_maybe("number", Some(self.number));
            }
            "OlderStories" => {
                if !self.next_of_list(page, self.stories.is_empty()) {
                    self.since = MADE_AT_S - 86_400 * self.session.rng.random_range(30..=730);
                }
                asked.put_maybe("since", Some(self.since)).put_maybe("number", Some(self.number));
            }
            "ViewStory" => {
                self.choose_story();
                self.this(asked);
            }
            "ViewComment" | "ModerateComment" => {
                self.choose_comment();
                self.this(asked);
            }
            "PostComment" => self.this(asked),
            "StoreComment" => {
                self.session.post(asked);
                account::log_in(self.user, asked);
                self.this(asked);
                asked
                    .put("subject", &title(&mut self.session.rng, 1, 5))
                    .put("text", &words(&mut self.session.rng, 50, 1000));
            }
            "StoreModerateLog" => {
                self.session.post(asked);
                account::log_in(self.author, asked);
                if self.comment.is_none() {
                    // A new story has no comments yet; every story that was there at first has one.
                    self.stories.clear();
                    self.choose_story();
                    self.comment = Some(self.story * COMMENT_IDS_PER_STORY as i64 + 1);
                }
                self.this(asked);
                let rating = self.session.rng.random_range(-1..=1);
                asked.put_maybe("rating", Some(rating));
            }
            "StoreStory" => {
                self.session.post(asked);
                account::log_in(self.user, asked);
                asked
                    .put("title", &title(&mut self.session.rng, 3, 8))
                    .put("body", &words(&mut self.session.rng, 200, 4000));
                asked.put_maybe("category", Some(self.category));
            }
            "RegisterUser" => account::register(&mut self.session, asked),
            "SearchInStories" | "SearchInComments" | "SearchInUsers" => self.search(page, asked),
            "Authortask" | "ReviewStories" => account::log_in(self.author, asked),
            "AcceptStory" | "RejectStory" => {
                asked.post();
                account::log_in(self.author, asked);
                asked.put_maybe(
                    "submission",
                    self.submissions.choose(&mut self.session.rng).copied().or(Some(1)),
                );
            }
            _ => {}
        }
    }

    fn take(&mut self, page: &str, answer: &Value) -> Option<Receipt> {
        self.session.last = page.to_owned();
        let number = |name: &str| answer.get(name).and_then(Value::as_i64);
        let rows = |name: &str| answer.get(name).and_then(Value::as_array);
        let ids =
            |rows: &Vec<Value>| rows.iter().filter_map(|row| row.get("id")?.as_i64()).collect::<Vec<i64>>();
        if let Some(stories) = rows("stories") {
            self.stories = ids(stories);
        }
        if let Some(submissions) = rows("submissions") {
            self.submissions = ids(submissions);
        }
        if let Some(comments) = rows("comments") {
            // Results of a search contain the ids of their stories.
            let here = number("story");
            let pair = |row: &Value| {
                Some((row.get("story").and_then(Value::as_i64).or(here)?, row.get("id")?.as_i64()?))
            };
            let found: Vec<(i64, i64)> = comments.iter().filter_map(pair).collect();
            // A comment without answers keeps the previous list.
            if !found.is_empty() || page.starts_with("Search") {
                self.comments = found;
            }
        }
        let kind = match page {
            "StoreComment" => "comment",
            "StoreModerateLog" => "rating",
            "StoreStory" => "story",
            "RegisterUser" => "user",
            _ => return None,
        };
        Some(self.session.receipt(kind, number("id")?, number("amount")?))
    }

    fn refused(&mut self, page: &str) {
        self.session.last = page.to_owned();
        self.stories.clear();
        self.comments.clear();
        self.submissions.clear();
        self.choose_story();
    }
}
