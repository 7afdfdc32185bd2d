//! Errors that the kernel seldom gives, made by strace; and what an ordinary user's copy does.

mod descriptors;
mod ordinary_user;
mod other_calls;
mod transfer;
