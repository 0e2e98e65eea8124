package conformance_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
)

const everyKey = `
family: chunk
scenarios:
- id: chunk-every-key
  error_types: {Bad: '', Worse: Bad}
  skippable: [Bad]
  not_skippable: [Worse]
  items: [a,b,c,d]
  chunk_size: 2
  skip_limit: 1
  filters: [b]
  faults: [{phase: write, item: c, error: Bad, error_class: skippable}, {phase: process, item: d, attempts: [2], error: Worse, error_class: fatal}]
  restart: {faults: []}
  expect:
    status: FAILED
    exit_code: FAILED
    error: non_skippable
    read: 4
    write: 1
    filter: 1
    read_skip: 0
    process_skip: 0
    write_skip: 1
    skips: 1
    commits: 1
    commits_min: 1
    rollbacks: 3
    written: [a]
    written_count: 1
    read_items: [a,b,c,d]
    read_calls: 4
    process_calls: [a,b,c,d,c,d]
    process_call_count: 6
    write_calls: [[a],[c,d],[c]]
    write_call_count: 3
    write_item_count: 4
    write_touch: [a,c,c]
    skipped_items: [c]
    listener_calls: {before_chunk: 2, after_write: [a], on_write_error: [c,d,c]}
    listener_called: [on_chunk_error]
    listener_trail: [before_chunk, after_write, before_chunk]
    stream_calls: {open: 1, update: 2, close: 1}
    classified_skippable: true
    after_restart: {status: COMPLETED, resume_at: 3, written: [d], read: 1, read_calls: 2, skips: 0}
`

func TestEveryChangeOfAnExpectationIsNoticed(t *testing.T) {
	t.Parallel()
	f, err := readFile("every-key.yaml", []byte(everyKey))
	require.NoError(t, err)
	decoded := func() *chunkScenario {
		s, err := decodeChunk(ofFamily([]file{f}, "chunk")[0])
		require.NoError(t, err)
		return s
	}
	s := decoded()
	r := &chunkRun{t: t, engine: testengine.New(t, testdb.SQLite(t)), scenario: s, positioned: true, name: "every_key"}
	r.prepare()
	first := r.launch(s.Faults, &s.Expect, false)
	r.compare("", &s.Expect, first)
	r.exec("delete from " + r.name)
	second := r.launch(s.Restart.Faults, s.Expect.AfterRestart, true)
	r.compare("after_restart.", s.Expect.AfterRestart, second)

	fields := reflect.TypeFor[expectation]()
	for i := range fields.NumField() {
		key, _, _ := strings.Cut(fields.Field(i).Tag.Get("yaml"), ",")
		e, o := &decoded().Expect, first
		switch key {
		case "derived", "peer_only", "after_restart":
			continue
		case "resume_at":
			e, o = e.AfterRestart, second
		}
		field := reflect.ValueOf(e).Elem().Field(i)
		require.False(t, field.IsZero(), "%s is not pinned here", key)
		change(t, key, field)
		require.NotEmpty(t, r.problems(e, o), "a changed %s was not noticed", key)
	}
}

func change(t *testing.T, key string, field reflect.Value) {
	t.Helper()
	switch value := field.Interface().(type) {
	case *string:
		*value += "0"
		if key == "error" { // a closed set
			*value = "none"
		}
	case *int64:
		*value += 1000
	case *[]string:
		*value = append(*value, "before_write")
	case *[][]string:
		*value = append(*value, []string{"x"})
	case []string:
		field.Set(reflect.ValueOf([]string{"after_chunk", "before_read"}))
	case map[string]countOrList:
		value["after_write"] = countOrList{count: "7"}
	case *streamCalls:
		value.counts["close"] = "2"
	default:
		require.Fail(t, "this test cannot change", key)
	}
}
