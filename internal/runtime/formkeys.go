package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/nearest"
)

// KeyCure returns advice for a key of Weaver's submissions that one here lacks,
// or "".
func KeyCure(key string) string {
	switch key {
	case "max_attempts_per_task":
		return "write max_attempts"
	case "deadline_ms":
		return `write deadline, a text with a unit, such as "60s"`
	case "max_no_progress_steps":
		return "write max_no_progress"
	case "task_type":
		return "write type"
	}
	return ""
}

func unknownKeys(text []byte) error {
	var errs []error
	var whole map[string]json.RawMessage
	var tasks []json.RawMessage
	if json.Unmarshal(text, &tasks) != nil {
		if json.Unmarshal(text, &whole) != nil {
			return nil
		}
		errs = append(errs, unknownIn("", text, reflect.TypeFor[SubmitRequest]()), unknownIn("budget: ", whole["budget"], reflect.TypeFor[BudgetForm]()))
		if json.Unmarshal(whole["tasks"], &tasks) != nil {
			return errors.Join(errs...)
		}
	}
	for i, t := range tasks {
		errs = append(errs, unknownIn(fmt.Sprintf("tasks[%d]: ", i), t, reflect.TypeFor[SpecForm]()))
	}
	return errors.Join(errs...)
}

func unknownIn(where string, object json.RawMessage, form reflect.Type) error {
	var fields map[string]json.RawMessage
	if len(object) == 0 || json.Unmarshal(object, &fields) != nil {
		return nil
	}
	var known, unknown []string
	for _, field := range reflect.VisibleFields(form) {
		if !field.Anonymous {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			known = append(known, name)
		}
	}
	for key := range fields {
		if !slices.ContainsFunc(known, func(name string) bool { return strings.EqualFold(name, key) }) { // as the decoder compares
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	var errs []error
	for _, key := range unknown {
		hint := nearest.Hint(key, known)
		if cure := KeyCure(key); cure != "" {
			hint = ": " + cure
		}
		errs = append(errs, fmt.Errorf("%sunknown key %q%s", where, key, hint))
	}
	return errors.Join(errs...)
}
