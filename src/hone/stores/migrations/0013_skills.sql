-- The stems of a skill's name, its description and the beginning of its body, one line each: what ranks it for a task. Cards
-- are a cache; they are made again when somebody asks for skills.
UPDATE skills SET card = NULL WHERE card IS NOT NULL;
DELETE FROM cards;
ALTER TABLE cards ADD COLUMN stems TEXT NOT NULL DEFAULT '';
DELETE FROM card_words_content;
INSERT INTO card_words (card_words) VALUES ('rebuild');
