-- A gigabyte through the server's memory and its log, and away again.
CREATE TABLE seasoning (page text STORAGE PLAIN);
INSERT INTO seasoning SELECT repeat('x', 8000) FROM generate_series(1, 131072);
DROP TABLE seasoning;
