-- Schema 2.19: where the mistake in a skipped item is (rule C12): a JSON object, or ''.
ALTER TABLE "{{prefix}}skipped_item" ADD COLUMN fault TEXT NOT NULL DEFAULT '';
