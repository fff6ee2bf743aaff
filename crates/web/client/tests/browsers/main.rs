//! Tests of the web client against scripted servers and nginx, in one program to link only once.

mod answers;
mod clients;
mod common;
mod open_loop;
mod parser;
mod trees;
mod with_nginx;
