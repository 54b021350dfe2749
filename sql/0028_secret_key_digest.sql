-- Identifies the SECRET_KEY that all servers of this database seal with, without saying anything about the key. It is stored
-- when the first server starts, and replaced when SECRET_KEY is rotated.
alter table instance add column secret_key_digest text; -- hexadecimal
