package testahead

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/pkg/batch/chunk"
)

// reading says how the source behaves.
type reading string

const (
	// stepsOver: a failed read consumes nothing, and the reader can step over it.
	stepsOver reading = "steps over"
	// consumes: a failed read has consumed the item.
	consumes reading = "consumes"
	// stuck: a failed read consumes nothing, and nothing can be done about it.
	stuck reading = "stuck"
)

type restarting string

const (
	// counts: at its start; the engine counts.
	counts restarting = "counts"
	// seeks: at the position that it had after the last chunk.
	seeks restarting = "seeks"
	// marks: at any item (item.Marker).
	marks restarting = "marks"
)

type form string

const (
	// table: rows, in the chunk's transaction.
	table form = "table"
	// completing: the same, and one more row when all items are written.
	completing form = "completing table"
	// file: outside of transactions.
	file form = "file"
)

type output struct {
	Form form
	As   component // of a file
	// Encodes: its output can be encoded ahead.
	Encodes bool
	// Beyond: the file may have items beyond the committed position, which a restart removes (rule C20c).
	Beyond bool
}

type launch []fault

type scenario struct {
	Items      int
	Size       int
	MaxSkips   int // skipped reads that end a chunk
	SkipLimit  int // -1 means no skip policy
	RetryLimit int
	Keep       bool // outputs
	InTx       bool // processing
	Isolate    chunk.Isolation
	Workers    int
	Restart    restarting
	Reading    reading
	// Peeks: the reader reads the next item ahead as soon as it has read one, so that a failure may come with
	// a full chunk.
	Peeks      bool
	Processors []bool // whether each may be called ahead
	// FilterEach: a processor leaves out the items at a multiple of it; 0 means none.
	FilterEach int
	Outputs    []output
	// StaleEach: chunks that begin at a multiple of it are not written as they were encoded; 0 means none.
	StaleEach int
	// UnencodableEach: items at a multiple of it cannot be encoded; 0 means none.
	UnencodableEach int
	BeforeWrite     bool // a listener before each write
	AfterProcess    bool // a listener after each item that was processed
	// Racing: some faults happen on the reading goroutine.
	Racing   bool
	Launches []launch
}

func (s *scenario) filters(place int) bool { return s.FilterEach > 0 && place%s.FilterEach == 0 }

func (s *scenario) has(f form) bool {
	return slices.ContainsFunc(s.Outputs, func(o output) bool { return o.Form == f })
}

func (s *scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "items %d size %d max skips %d skip %d retry %d keep %v in_tx %v isolate %s workers %d reader %s, %s, peeks %v processors %v filter each %d writers %v stale each %d unencodable each %d before write %v after process %v racing %v\n",
		s.Items, s.Size, s.MaxSkips, s.SkipLimit, s.RetryLimit, s.Keep, s.InTx, s.Isolate, s.Workers, s.Restart, s.Reading, s.Peeks, s.Processors, s.FilterEach,
		s.Outputs, s.StaleEach, s.UnencodableEach, s.BeforeWrite, s.AfterProcess, s.Racing)
	for i, l := range s.Launches {
		fmt.Fprintf(&b, "  launch %d:", i+1)
		for _, f := range l {
			fmt.Fprintf(&b, " {%v}", f)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// scenarios generates cases. rapid prefers small numbers and the first elements of a list: values that lead
// far into a step come first here.
func scenarios() *rapid.Generator[*scenario] {
	return rapid.Custom(func(t *rapid.T) *scenario {
		s := &scenario{
			Items:      rapid.IntRange(draw(t, "least", 6, 0, 12, 20), 30).Draw(t, "items"),
			Size:       draw(t, "size", 2, 3, 4, 1, 5, 6, 8),
			MaxSkips:   draw(t, "max skips", chunk.MinSkippedReads, 1, 2, 3),
			SkipLimit:  draw(t, "skip limit", 100, 100, 2, 100, 1, 100, 5, 0, 100, -1),
			RetryLimit: draw(t, "retry limit", 0, 1, 2),
			Isolate:    draw(t, "isolate", chunk.IsolateBisect, chunk.IsolateEach, chunk.IsolateNone),
			Workers:    draw(t, "workers", 1, 2, 1, 3),
			Restart:    draw(t, "restart", counts, seeks, marks),
			Reading:    draw(t, "reading", consumes, stepsOver, consumes, stepsOver, stuck),
			Peeks:      rapid.Bool().Draw(t, "peeks"),
		}
		s.InTx = s.Workers == 1 && draw(t, "in transaction", false, false, true, false)
		s.Keep = !s.InTx && draw(t, "keep", false, true, false)
		s.parts(t)
		s.Racing = draw(t, "racing", false, false, false, false, false, false, true, false)
		data := s.dataFaults(t)
		for range draw(t, "launches", 1, 2, 3) {
			l := slices.Clone(data)
			for range draw(t, "faults", 1, 2, 0, 3) {
				l = append(l, s.fault(t))
			}
			if s.Racing {
				l = append(l, s.racingFault(t))
			}
			s.Launches = append(s.Launches, l)
		}
		s.Launches = append(s.Launches, nil)
		return s
	})
}

func (s *scenario) parts(t *rapid.T) {
	for range draw(t, "processors", 1, 0, 2, 1) {
		s.Processors = append(s.Processors, draw(t, "independent", true, true, true, false, true, true))
	}
	if len(s.Processors) > 0 {
		s.FilterEach = draw(t, "filter each", 0, 3, 2, 4)
	}
	encode := rapid.Bool().Draw(t, "all encode")
	for range draw(t, "writers", 1, 2, 3, 1) {
		o := output{
			Form: draw(t, "writer", table, file, completing, table), Encodes: encode || draw(t, "encodes", true, true, false, true),
		}
		if o.As = inMemory; o.Form == file {
			o.As = draw(t, "as", inMemory, asLines, asFixed, asRecords, inMemory, asCSV)
		}
		o.Beyond = o.Form == file && o.Encodes && draw(t, "beyond", true, false, true)
		s.Outputs = append(s.Outputs, o)
	}
	s.StaleEach = draw(t, "stale", 0, 2, 0, 3)
	s.UnencodableEach = draw(t, "unencodable", 0, 5, 0, 7)
	s.BeforeWrite = draw(t, "before write", false, false, false, true, false)
	s.AfterProcess = draw(t, "after process", false, false, false, false, false, true, false, false)
}

func (s *scenario) dataFaults(t *rapid.T) launch {
	var list launch
	for range draw(t, "faults of the data", 1, 0, 2) {
		list = append(list, fault{At: draw(t, "point", atRead, atProcess, atWrite), Place: s.place(t), Kind: draw(t, "kind", skippable, both)})
	}
	return list
}
