package acceptance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestMistakesInTheKeysOfFilesAreNamedWithTheirCures(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"job.yaml": `job: encodings
flow:
- step: read
  chunk:
    reader: {csv: {path: in.csv, encoding: windws-1252, item: {id: int}}}
    writer: {jsonl: {path: out.jsonl, encoding: UTF-8}}
- step: convert
  chunk:
    reader: {lines: {path: in.txt, encoding: klingon-poetry}}
    writer: {lines: {path: out.txt, encoding: ibm-037}}
- step: compressed
  chunk:
    reader: {lines: {path: in.gz, compression: gzip, member: a.txt}}
    writer: {lines: {path: out.bz2, compression: bzip2}}
- step: append
  chunk:
    reader: {csv: {path: in.csv, item: {id: int}}}
    writer: {json: {path: out.json, append: true}}
- step: trailer
  chunk:
    reader: {csv: {path: in.csv, item: {id: int}}}
    writer: {fixed: {path: out.txt, append: true, columns: {id: 1-9}, trailer: T}}
`})
	code, out := s.run("validate", "job.yaml")
	require.Equal(t, 2, code, out)
	for _, want := range []string{
		`job.yaml:5:44: encoding: "windws-1252" is not allowed`, "did you mean windows-1252?",
		`job.yaml:6:49: encoding: "UTF-8" is not allowed`, "did you mean utf-8?",
		`job.yaml:9:46: encoding: "klingon-poetry" is not allowed`, "allowed: utf-8, utf8, utf-8-bom, ",
		`job.yaml:10:47: encoding: "ibm-037" is not allowed`, "did you mean ibm037?",
		`job.yaml:13:62: reader lines: member: it names a file in a zip archive, but compression is gzip`,
		`append: a JSON array has an end, and nothing can follow it: use jsonl, which has one value per line`,
		`append: the file has a trailer, and nothing can follow it`,
		`job.yaml:14:50: compression: "bzip2" is not allowed`, "did you mean gzip? allowed: auto, none, gzip, zstd",
	} {
		require.Contains(t, out, want)
	}
}
