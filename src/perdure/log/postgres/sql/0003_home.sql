-- Which database the tables are of, as its server and itself are numbered, so that a copy of it is not taken for it. In
-- the row of version 1; absent where that could not be told.
ALTER TABLE perdure.schema_version ADD COLUMN home text;
