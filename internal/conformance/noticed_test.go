package conformance_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// other is the name of an execution of another job, which is never expected.
const other = "an execution of another job"

// noticed alters the pinned values of a scenario, one after the other, once it holds, and compares again: the
// altered one must not hold. A runner that ignores a key would accept any value of it. The scenarios of flows
// and of the lifecycle do so on SQLite.
func noticed(t *testing.T) checker {
	return func(e any, failure error, problems func() []string) {
		for _, change := range alterations(reflect.ValueOf(e).Elem(), failure) {
			undo := change.apply()
			assert.NotEmpty(t, problems(), "an altered %s was not noticed", change.key)
			undo()
		}
		assert.Empty(t, problems(), "after the alterations were undone")
	}
}

func (r *lifeRun) addStranger() {
	seed := action{Params: parameters{"strange": {kind: core.TypeInt, text: "1"}}}
	stranger := &lifeRun{t: r.t, engine: r.engine, scenario: &lifeScenario{Actions: []action{seed}}, name: r.name + "_other"}
	r.aliases[other] = stranger.seedOp(&seed).exec.ID
}

func TestEveryKeyIsPinnedByAScenario(t *testing.T) {
	t.Parallel()
	keys := map[string]bool{}
	pinned := func(expectation any) {
		for _, change := range alterations(reflect.ValueOf(expectation).Elem(), nil) {
			keys[change.key] = true
		}
	}
	for _, dir := range []string{scenarioFolder(t), "own"} {
		files, err := readFolder(dir)
		require.NoError(t, err)
		for _, d := range ofFamily(files, "flow") {
			s, err := decodeFlow(d)
			require.NoError(t, err)
			if reason, err := s.differing(); err != nil || reason != "" {
				continue
			}
			for i := range s.Runs {
				pinned(&s.Runs[i].Expect)
			}
		}
		for _, d := range ofFamily(files, "lifecycle") {
			s, err := decodeLife(d)
			require.NoError(t, err)
			if reason, err := s.differing(); err != nil || reason != "" {
				continue
			}
			for i := range s.Actions {
				pinned(&s.Actions[i].Expect)
			}
		}
	}
	for _, key := range keysOf(reflect.TypeFor[lifeExpectation]()) {
		assert.True(t, keys[key], "no scenario pins %s: nobody knows whether it is looked at", key)
	}
}

type alteration struct {
	key   string
	apply func() (undo func())
}

func keysOf(t reflect.Type) []string {
	var keys []string
	for i := range t.NumField() {
		field := t.Field(i)
		key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		switch {
		case field.Anonymous:
			keys = append(keys, keysOf(field.Type)...)
		case key != "derived" && key != "peer_only":
			keys = append(keys, key)
		}
	}
	return keys
}

func alterations(e reflect.Value, failure error) []alteration {
	var list []alteration
	for i := range e.NumField() {
		field, tag := e.Field(i), e.Type().Field(i)
		key, _, _ := strings.Cut(tag.Tag.Get("yaml"), ",")
		if tag.Anonymous {
			list = append(list, alterations(field, failure)...)
			continue
		}
		if field.IsZero() || key == "derived" || key == "peer_only" {
			continue
		}
		for _, wrong := range wrongValues(key, field.Interface(), failure) {
			list = append(list, alteration{key, func() func() {
				right := reflect.New(field.Type()).Elem()
				right.Set(field)
				field.Set(reflect.ValueOf(wrong))
				return func() { field.Set(right) }
			}})
		}
	}
	return list
}

func wrongValues(key string, right any, failure error) []any {
	var list []any
	switch right := right.(type) {
	case *string:
		wrong := wrongText(key, *right, failure)
		list = append(list, &wrong)
	case *bool:
		wrong := !*right
		list = append(list, &wrong)
	case *[]string:
		wrong := append(slices.Clone(*right), wrongText(key, "x", failure))
		list = append(list, &wrong)
	case []string:
		wrong := append(slices.Clone(right), wrongText(key, "x", failure))
		list = append(list, wrong)
	case map[string]string:
		for name := range right {
			wrong := maps.Clone(right)
			wrong[name] = wrongText(key, right[name], failure)
			list = append(list, wrong)
		}
	case []map[string]string:
		for i, one := range right {
			for name := range one {
				wrong := slices.Clone(right)
				wrong[i] = maps.Clone(one)
				wrong[i][name] += "0"
				list = append(list, wrong)
			}
		}
	case map[string]map[string]string:
		for name, one := range right {
			wrong := maps.Clone(right)
			wrong[name] = map[string]string{}
			for key, value := range one {
				wrong[name][key] = value + "0"
			}
			list = append(list, wrong)
		}
	case *contextValues:
		wrong := wrongContext(*right)
		list = append(list, &wrong)
	case map[string]contextValues:
		for name := range right {
			wrong := maps.Clone(right)
			wrong[name] = wrongContext(right[name])
			list = append(list, wrong)
		}
	case *stepValues:
		wrong := &stepValues{last: wrongContext(right.last)}
		if right.last == nil {
			wrong = &stepValues{byName: map[string]contextValues{}}
			for name := range right.byName {
				wrong.byName[name] = wrongContext(right.byName[name])
			}
		}
		list = append(list, wrong)
	default:
		panic(fmt.Sprintf("%s: this test cannot alter a %T", key, right))
	}
	return list
}

func wrongText(key, right string, failure error) string {
	switch key {
	case "error", "refused":
		for _, symbol := range sortedKeys(reasons()) {
			if !reasons()[symbol](failure) {
				return symbol
			}
		}
	case "terminate_only":
		return map[string]string{"true": "false", "false": "true"}[right]
	case "process_exit":
		return map[string]string{"0": "1", "1": "0"}[right]
	case "same_instance_as", "same_params_as", "last_step_execution_of", "newest_first":
		return other
	case "listener_called":
		return "never_called"
	}
	return right + "0"
}

func wrongContext(right contextValues) contextValues {
	wrong := contextValues{"surplus": {value: "x"}}
	maps.Copy(wrong, right)
	return wrong
}

func TestEveryRowOfATableIsLookedAt(t *testing.T) {
	t.Parallel()
	right := tables{
		PatternOrder: [][]string{{"a", "*"}}, PatternMatch: [][]string{{"a*", "ab", "true"}}, SeverityOrder: [][]string{{"COMPLETED", "FAILED"}},
		StatusMax: [][]string{{"FAILED", "COMPLETED", "FAILED"}}, ExitAnd: [][]string{{"COMPLETED", "FAILED", "FAILED"}},
	}
	require.Empty(t, right.problems())
	wrong := tables{
		PatternOrder: [][]string{{"*", "a"}}, PatternMatch: [][]string{{"a*", "ab", "false"}}, SeverityOrder: [][]string{{"FAILED", "COMPLETED"}},
		StatusMax: [][]string{{"FAILED", "COMPLETED", "COMPLETED"}}, ExitAnd: [][]string{{"COMPLETED", "FAILED", "COMPLETED"}},
	}
	require.Len(t, wrong.problems(), 5)
	short := tables{ExitAnd: [][]string{{"COMPLETED", "FAILED"}}}
	require.Error(t, short.validate())
}

func TestWhatTheFormatDoesNotHaveFailsItsScenario(t *testing.T) {
	t.Parallel()
	decoders := map[string]func(d document) error{
		"flow":      func(d document) error { _, err := decodeFlow(d); return err },
		"lifecycle": func(d document) error { _, err := decodeLife(d); return err },
	}
	for text, wrong := range map[string]string{
		"family: flow\nscenarios: [{id: flow-a, elements: [{step: s}], runs: [{expect: {status: COMPLETED}}]}]":                                            "",
		"family: flow\nscenarios: [{id: flow-a, elements: [{step: s, mood: good}], runs: [{expect: {}}]}]":                                                 "mood",
		"family: flow\nscenarios: [{id: flow-a, elements: [{step: s, on: [{match: a, too: b}]}], runs: [{expect: {}}]}]":                                   "too",
		"family: flow\nscenarios: [{id: flow-a, elements: [{step: s}], runs: [{expect: {stat: a}}]}]":                                                      "stat",
		"family: flow\nscenarios: [{id: flow-a, elements: [{step: s}], runs: [{on: {s: [{mach: a}]}, expect: {}}]}]":                                       "mach",
		"family: flow\nscenarios: [{id: flow-a, elements: [{step: s, outcome: [FINE]}], runs: [{expect: {}}]}]":                                            "FINE",
		"family: flow\nscenarios: [{id: flow-a, elements: [{step: s}], runs: [{expect: {error: bad_mood}}]}]":                                              "bad_mood",
		"family: flow\nscenarios: [{id: flow-a, elements: [{flow: f, elements: [{step: s, decision: d}]}], runs: [{expect: {}}]}]":                         "one of",
		"family: lifecycle\nscenarios: [{id: life-a, actions: [{op: launch, params: {a: {v: 1, identifying: false}}, expect: {}}]}]":                       "",
		"family: lifecycle\nscenarios: [{id: life-a, actions: [{op: lunch}]}]":                                                                             "op is unknown",
		"family: lifecycle\nscenarios: [{id: life-a, actions: [{op: launch, mood: good}]}]":                                                                "mood",
		"family: lifecycle\nscenarios: [{id: life-a, actions: [{op: abandon, params: {a: 1}}]}]":                                                           "params is not of this op",
		"family: lifecycle\nscenarios: [{id: life-a, actions: [{op: launch, params: {a: {v: 1, secret: true}}}]}]":                                         "secret",
		"family: lifecycle\nscenarios: [{id: life-a, actions: [{op: launch, expect: {stat: a}}]}]":                                                         "stat",
		"family: lifecycle\nscenarios: [{id: life-a, job: {steps: [{name: s, mood: good}]}, actions: [{op: launch}]}]":                                     "mood",
		"family: lifecycle\nscenarios: [{id: life-a, job: {steps: [{name: s, stream_throws: read}]}, actions: [{op: launch}]}]":                            "stream_throws",
		"family: lifecycle\nscenarios: [{id: life-a, job: {steps: [{name: s, terminate_only_in: close}]}, actions: [{op: launch}]}]":                       "terminate_only_in",
		"family: lifecycle\nscenarios: [{id: life-a, job: {steps: [{name: s, listeners: [deaf]}]}, actions: [{op: launch}]}]":                              "listeners",
		"family: lifecycle\nscenarios: [{id: life-a, job: {steps: [{name: s, repo_throws: {call: x, when: always}}]}, actions: [{op: launch}]}]":           "repo_throws",
		"family: lifecycle\nscenarios: [{id: life-a, job: {steps: [{name: s, items_count: 2, fault: {phase: read, index: 3}}]}, actions: [{op: launch}]}]": "index is 3",
		"family: lifecycle\nscenarios: [{id: life-a, job: {steps: [{name: s, partition_outcome: {a: [FAILED]}}]}, actions: [{op: launch}]}]":               "needs partitions",
	} {
		f, err := readFile("a.yaml", []byte(text))
		require.NoError(t, err, text)
		err = decoders[f.Family](ofFamily([]file{f}, f.Family)[0])
		if wrong == "" {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorContains(t, err, wrong, text)
	}
}
