package conformance_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

type file struct {
	Family    string      `yaml:"family"`
	Scenarios []yaml.Node `yaml:"scenarios"`

	path string
}

type document struct {
	id   string
	node *yaml.Node
	path string
}

// readFolder reads all YAML files of a folder and of its subfolders. A folder
// without any is an error.
func readFolder(dir string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path)) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := readFile(path, text)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		files = append(files, f)
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s holds no scenarios", dir)
	}
	return files, err
}

func readFile(path string, text []byte) (file, error) {
	f := file{path: path}
	if err := strictly(text, &f); err != nil {
		return f, err
	}
	if f.Family == "" || len(f.Scenarios) == 0 {
		return f, errors.New("a file names its family and has scenarios")
	}
	return f, nil
}

func strictly(text []byte, value any) error {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	return decoder.Decode(value)
}

func (d document) decode(value any) error {
	text, err := yaml.Marshal(d.node)
	if err != nil {
		return err
	}
	return strictly(text, value)
}

func familyNames(files []file) []string {
	var names []string
	for _, f := range files {
		if !slices.Contains(names, f.Family) {
			names = append(names, f.Family)
		}
	}
	return names
}

func ofFamily(files []file, family string) []document {
	var list []document
	for _, f := range files {
		if f.Family != family {
			continue
		}
		for i := range f.Scenarios {
			node := &f.Scenarios[i]
			list = append(list, document{id: idOf(node, i), node: node, path: f.path})
		}
	}
	return list
}

// idOf finds the id before the rest is decoded, so that a scenario that cannot be decoded fails under its own
// name.
func idOf(node *yaml.Node, i int) string {
	for k := 0; k+1 < len(node.Content); k += 2 {
		if node.Content[k].Value == "id" && node.Content[k+1].Value != "" {
			return node.Content[k+1].Value
		}
	}
	return fmt.Sprintf("scenario-%d-without-id", i+1)
}

type common struct {
	ID      string            `yaml:"id"`
	Source  string            `yaml:"source"`
	Rev     string            `yaml:"rev"`
	Note    string            `yaml:"note"`
	Assumes map[string]string `yaml:"assumes"`
}

func knobs() map[string]struct {
	ours    string
	choices []string
} {
	type knob = struct {
		ours    string
		choices []string
	}
	return map[string]knob{
		"read_skip_slot":       {"refill", []string{"refill", "consume"}},
		"empty_chunk":          {"no_commit", []string{"no_commit", "commit"}},
		"skip_listener_timing": {"before_commit", []string{"before_commit", "immediate"}},
		"scan_commits":         {"per_item", []string{"per_item", "per_chunk"}},
		"retry_rollback":       {"each", []string{"each", "once"}},
		"transition_match":     {"specificity", []string{"specificity", "declared_order"}},
		"restart_point":        {"replay", []string{"replay", "jump"}},
	}
}

// differing returns the first knob on which the scenario and we disagree. An
// unknown knob or value is an error.
func (c common) differing() (string, error) {
	reason := ""
	for _, name := range sortedKeys(c.Assumes) {
		value := c.Assumes[name]
		knob, known := knobs()[name]
		if !known || !slices.Contains(knob.choices, value) {
			return "", fmt.Errorf("assumes %s: %s, which is no knob of the format", name, value)
		}
		if value != knob.ours && reason == "" {
			reason = fmt.Sprintf("assumes %s: %s; ours is %s", name, value, knob.ours)
		}
	}
	return reason, nil
}

func TestAKeyThatTheFormatDoesNotHaveFailsItsScenarioAlone(t *testing.T) {
	t.Parallel()
	f, err := readFile("a.yaml", []byte(strings.Join([]string{
		"family: chunk", "scenarios:",
		"- {id: chunk-good, items: [1], chunk_size: 1, expect: {read: 1}}",
		"- {id: chunk-bad, items: [1], chunk_size: 1, expect: {reed: 1}}",
		"- {chunk_sizes: 1}",
	}, "\n")))
	require.NoError(t, err)
	documents := ofFamily([]file{f}, "chunk")
	require.Len(t, documents, 3)
	_, err = decodeChunk(documents[0])
	require.NoError(t, err)
	_, err = decodeChunk(documents[1])
	require.ErrorContains(t, err, "reed")
	_, err = decodeChunk(documents[2])
	require.ErrorContains(t, err, "chunk_sizes")
	require.Equal(t, "scenario-3-without-id", documents[2].id)

	_, err = readFile("b.yaml", []byte("family: chunk\nscenario: []"))
	require.ErrorContains(t, err, "scenario")
}

func TestOnlyAKnobThatDiffersSkipsAScenario(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		assumes      map[string]string
		reason, fail string
	}{
		{nil, "", ""},
		{map[string]string{"read_skip_slot": "refill"}, "", ""},
		{map[string]string{"read_skip_slot": "consume", "empty_chunk": "no_commit"}, "assumes read_skip_slot: consume; ours is refill", ""},
		{map[string]string{"read_skip_slot": "never"}, "", "no knob"},
		{map[string]string{"mood": "good"}, "", "no knob"},
	} {
		reason, err := common{Assumes: c.assumes}.differing()
		if c.fail != "" {
			require.ErrorContains(t, err, c.fail)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.reason, reason)
	}
}

func TestTheScenariosOfOtherFamiliesAreReadToo(t *testing.T) {
	t.Parallel()
	files, err := readFolder("testdata")
	require.NoError(t, err)
	require.Equal(t, []string{"chunk", "flow", "lifecycle"}, familyNames(files))
	seen := map[string]bool{}
	for _, name := range familyNames(files) {
		for _, d := range ofFamily(files, name) {
			require.False(t, seen[d.id], d.id)
			seen[d.id] = true
		}
	}
	for family, n := range map[string]int{"chunk": 89, "flow": 60, "lifecycle": 72} {
		require.Len(t, ofFamily(files, family), n)
	}

	_, err = readFolder(t.TempDir())
	require.ErrorContains(t, err, "no scenarios")
}
