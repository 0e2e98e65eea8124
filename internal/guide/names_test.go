package guide

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
)

// Rule D11a.
func TestWhatAFileOfTextWritesTheSameTypeReads(t *testing.T) {
	t.Parallel()
	e := batchtest.New(t)
	e.File("a.jsonl", `{"id": 1, "properties": {"mag": 4.5}, "at": [7, 8], "Paid On": "2026-11-20"}`+"\n")
	e.Job(e.File("copy.yaml", `
job: copy
types:
  quake: {id: int, mag: {type: float, from: properties.mag}, lon: {type: int, from: "at[0]"}, paid: {type: date, from: Paid On}}
flow:
- step: jsonl
  chunk: {reader: {jsonl: {path: a.jsonl, item: quake}}, writer: {jsonl: b.jsonl}}
- step: csv
  chunk: {reader: {jsonl: {path: b.jsonl, item: quake}}, writer: {csv: c.csv}}
- step: json
  chunk: {reader: {csv: {path: c.csv, item: quake}}, writer: {json: d.json}}
- step: keys
  chunk: {reader: {json: {path: d.json, item: quake}}, writer: {jsonl: {path: e.jsonl, keys: {mag: mag, lon: lon}}}}
- step: map
  chunk:
    reader: {json: {path: d.json, item: quake}}
    processor: {map: {only: true, mag: item.mag, lon: item.lon}}
    writer: {jsonl: f.jsonl}
`)).Completed()
	for name, want := range map[string]string{
		"b.jsonl": `{"id":1,"properties.mag":4.5,"at[0]":7,"Paid On":"2026-11-20"}` + "\n",
		"c.csv":   "id,properties.mag,at[0],Paid On\n1,4.5,7,2026-11-20\n",
		"d.json":  "[\n" + `{"id":1,"properties.mag":4.5,"at[0]":7,"Paid On":"2026-11-20"}` + "\n]\n",
		"e.jsonl": `{"mag":4.5,"lon":7}` + "\n",
		"f.jsonl": `{"mag":4.5,"lon":7}` + "\n",
	} {
		text, err := os.ReadFile(e.Path(name))
		require.NoError(t, err)
		require.Equal(t, want, string(text), name)
	}
}
