// Package position describes the stored positions of chunk steps: the committed line of an input, the
// committed bytes of an output. It imports chunk and core/item.
package position

import (
	"encoding/json"
	"strings"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

type readerPosition struct {
	Lines  *int64 `json:"lines"`  // csv, json, jsonl: lines before the next record
	Offset *int64 `json:"offset"` // bytes of a file
	Read   *int64 `json:"read"`   // query: rows returned
	Group  *int64 `json:"group"`  // parquet: the row group, and rows of it
	Row    *int64 `json:"row"`
	Key    []struct{ Name, Value string }
	// Snapshot: query reads without a key.
	Snapshot bool `json:"snapshot"`
}

// Text describes how far a chunk step is committed: "line 1,004 of in.csv". A
// position that only its reader understands is quoted; none is empty.
func Text(at item.Position, source string) string {
	if len(at) == 0 {
		return ""
	}
	reader, outcomes, err := chunk.ParseMark(at)
	if err != nil {
		return ""
	}
	text := readerText(reader, source)
	switch {
	case outcomes == 0:
		return text
	case text == "":
		return "item " + humanize.Count(outcomes) + ofSource(source)
	}
	return "the " + ordinal(outcomes) + " item after " + text
}

func readerText(at item.Position, source string) string {
	if len(at) == 0 {
		return ""
	}
	var p readerPosition
	if err := json.Unmarshal(at, &p); err != nil {
		return "position " + humanize.Clip(string(at), 80) + ofSource(source)
	}
	switch {
	case p.Snapshot && p.Read != nil:
		return "row " + humanize.Count(*p.Read) + " of a snapshot, which cannot be resumed: --from-start reads all rows again, and committed rows stay: empty the target first, or write in mode upsert or replace"
	case len(p.Key) > 0:
		var words []string
		for _, k := range p.Key {
			words = append(words, k.Name+" = "+k.Value)
		}
		text := strings.Join(words, ", ")
		if p.Read != nil {
			text += " (row " + humanize.Count(*p.Read) + ")"
		}
		return text
	case p.Lines != nil:
		return "line " + humanize.Count(*p.Lines) + ofSource(source)
	case p.Group != nil && p.Row != nil:
		return "row " + humanize.Count(*p.Row) + " of row group " + humanize.Count(*p.Group+1) + ofSource(source)
	case p.Offset != nil:
		return "byte " + humanize.Count(*p.Offset) + ofSource(source)
	}
	return "position " + humanize.Clip(string(at), 80) + ofSource(source)
}

func ofSource(source string) string {
	if source == "" {
		return ""
	}
	return " of " + source
}

func ordinal(n int64) string {
	suffix := "th"
	switch n % 10 {
	case 1:
		suffix = "st"
	case 2:
		suffix = "nd"
	case 3:
		suffix = "rd"
	}
	if n%100 >= 11 && n%100 <= 13 {
		suffix = "th"
	}
	return humanize.Count(n) + suffix
}

// File reads, from a writer's position, the suffix of the file with the
// committed bytes, and their number.
func File(at item.Position, writer int) (part string, bytes int64, ok bool) {
	var p struct {
		Writers []json.RawMessage `json:"writers"`
	}
	if json.Unmarshal(at, &p) != nil || writer >= len(p.Writers) {
		return "", 0, false
	}
	var w struct {
		Part   string `json:"part"`
		Offset *int64 `json:"offset"`
	}
	if json.Unmarshal(p.Writers[writer], &w) != nil || w.Offset == nil {
		return "", 0, false
	}
	return w.Part, *w.Offset, true
}
