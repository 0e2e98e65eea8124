package jobfile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/jobfile/docs"
)

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := docs.Schema(described(t))
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("job.json", doc))
	s, err := c.Compile("job.json")
	require.NoError(t, err)
	return s
}

func asJSON(t *testing.T, text []byte) any {
	t.Helper()
	var doc any
	require.NoError(t, yaml.Unmarshal(text, &doc))
	return datesAsText(doc)
}

// datesAsText undoes the YAML 1.1 reading of 2026-11-20 as a date: an editor sees a text.
func datesAsText(doc any) any {
	switch x := doc.(type) {
	case map[string]any:
		for key, value := range x {
			x[key] = datesAsText(value)
		}
	case []any:
		for i, value := range x {
			x[i] = datesAsText(value)
		}
	case time.Time:
		return x.Format(time.RFC3339)
	}
	return doc
}

func TestTheSchemaAcceptsWhatTheLoaderAccepts(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/valid/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	s := schema(t)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		_, err = jobfile.Parse(path, text, described(t))
		require.NoError(t, err)
		require.NoError(t, s.Validate(asJSON(t, text)), path)
	}
}

func TestTheSchemaRefusesWrongKeysTypesAndComponents(t *testing.T) {
	t.Parallel()
	s := schema(t)
	for _, text := range []string{
		"flow: [{step: a, tasklet: idle}]",
		"{job: x, flow: [{step: a, tasklet: idle}], unknown: 1}",
		"{job: x, flow: [{step: a, tasklet: idle, skip: 3}]}",
		"{job: x, flow: [{step: a, tasklet: nobody}]}",
		"{job: x, flow: [{tasklet: idle}]}",
		"{job: x, flow: [{step: a, decide: b, tasklet: idle}]}",
		"{job: x, flow: [{decide: a, tasklet: idle}]}",
		"{job: x, flow: [{decide: a, choose: [{when: true}]}]}",
		"{job: x, flow: [{decide: a, choose: [{next: {FAILED: end}}]}]}",
		"{job: x, flow: [{split: a}]}",
		"{job: x, flow: [{split: a, branches: [{step: b, tasklet: idle}]}]}",
		"{job: x, flow: [{flow: a, steps: [{step: b, tasklet: nobody}]}]}",
		"{job: x, flow: [{atomic: a, steps: [{step: b, tasklet: idle}], workers: 3}]}",
		"{job: x, flow: [{job: a}]}",
		"{job: x, flow: [{step: a, tasklet: idle, partition: {workers: 3}}]}",
		"{job: x, flow: [{step: a, tasklet: idle, partition: {by: {chapters: {names: [a], width: wide}}}}]}",
		"{job: x, flow: [{step: a, tasklet: idle, promote: [a]}]}",
		"{job: x, flow: [{step: a, tasklet: idle}], finally: {step: b, tasklet: idle}}",
		"{job: x, flow: [{step: a, tasklet: idle}], listeners: nobody}",
		"{job: x, flow: [{step: a, tasklet: {idle: {now: 1}}}]}",
		"{job: x, flow: [{step: a, tasklet: {idle: {}, note: {}}}]}",
		"{job: x, flow: [{step: a, tasklet: {note: {count: many}}}]}",
		"{job: x, flow: [{step: a, tasklet: {note: {count: '007'}}}]}",
		"{job: x, flow: [{step: a, tasklet: {note: {inner: {level: middle}}}}]}",
		"{job: x, flow: [{step: a, tasklet: {note: {wait: 1d}}}]}",
		"{job: x, flow: [{step: a, tasklet: {note: {on: 'yes'}}}]}",
		"{job: x, flow: [{step: a, chunk: {reader: count, writer: {sink: x}}}]}",
		"{job: x, flow: [{step: a, chunk: {reader: {count: {to: 1}}, writer: []}}]}",
		"{job: x, flow: [{step: a, chunk: {reader: {count: {to: 1, item: {a: {format: x}}}}, writer: {sink: x}}}]}",
		"{job: x, parameters: {a: {type: money}}, flow: [{step: a, tasklet: idle}]}",
		"{job: x, flow: [{step: a, tasklet: idle, next: {end: {exti: 1}}}]}",
		"{job: x, flow: [{step: a, tasklet: idle, transaction: {propagation: required}}]}",
		"{job: x, defaults: {retry: {errors: [deadlok]}}, flow: [{step: a, tasklet: idle}]}",
		"{job: x, defaults: {chunk: {isolate: halves}}, flow: [{step: a, tasklet: idle}]}",
		"{job: x, flow: [{step: a, listeners: sink, chunk: {reader: apples, writer: {sink: x}}}]}",
		"{job: x, flow: [{step: a, chunk: {reader: apples, writer: {sink: x}, skip: {except: [sqlstate]}}}]}",
		"{job: x, flow: [{step: a, chunk: {reader: apples, writer: {sink: x}, retry: {backoff: fast}}}]}",
	} {
		require.Error(t, s.Validate(asJSON(t, []byte(text))), text)
		_, err := jobfile.Parse("job.yaml", []byte(text), described(t))
		require.Error(t, err, text)
	}
}

func TestSchemaAndReferenceAreTheSameEveryTime(t *testing.T) {
	t.Parallel()
	first, err := docs.Schema(described(t))
	require.NoError(t, err)
	pages := docs.Reference(described(t))
	for range 5 {
		again, err := docs.Schema(described(t))
		require.NoError(t, err)
		require.Equal(t, string(first), string(again))
		require.Equal(t, pages, docs.Reference(described(t)))
	}
}

func TestTheReferenceHasAPagePerComponentAndOneForTheFile(t *testing.T) {
	t.Parallel()
	pages := docs.Reference(described(t))
	require.Len(t, pages, 2+len(components()))
	for name, golden := range map[string]string{"job-file.md": "job-file.md", "components.md": "components.md", "reader-count.md": "reader-count.md", "processor-set.md": "processor-set.md", "tasklet-note.md": "tasklet-note.md"} {
		path := filepath.Join("testdata", "reference", golden)
		if *update {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, pages[name], 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), string(pages[name]), name)
	}
}

func TestDescribeIsThePagesOfAllKindsOfThatName(t *testing.T) {
	t.Parallel()
	page, err := docs.Describe(described(t), "count")
	require.NoError(t, err)
	require.True(t, strings.Contains(string(page), "# reader `count`") && strings.Contains(string(page), "The last number."), string(page))
	_, err = docs.Describe(described(t), "cuont")
	require.ErrorContains(t, err, "there is no component cuont; did you mean count?")
}
