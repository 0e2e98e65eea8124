package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/refusal"
)

type (
	executionRecord struct {
		operator.Execution
		Restart string `json:"restart,omitempty"`
	}
	pageRecord struct {
		operator.ExecutionView
		Database string            `json:"database,omitempty"`
		Targets  []operator.Target `json:"targets,omitempty"` // of run and restart
		Notices  []operator.Notice `json:"notices,omitempty"` // as well
		Restart  string            `json:"restart,omitempty"` // as above
	}
)

func (env *environment) executionRecord(e operator.Execution) executionRecord {
	r := executionRecord{Execution: e}
	for _, a := range e.Actions {
		if a.Kind == refusal.ActRestart || a.Kind == refusal.ActRedrive {
			r.Restart = env.words().Hint(a).Text
		}
	}
	return r
}

func (env *environment) pageRecord(shown *operator.ExecutionView) pageRecord {
	r := pageRecord{ExecutionView: *shown, Database: env.databaseText(env.settings.Repository.Database)}
	r.Restart = env.executionRecord(shown.Execution).Restart
	return r
}

func (env *environment) printJSON(v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // conditions contain < and > and should be readable
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return env.print(b.String())
}

func (env *environment) print(text string) error {
	if _, err := env.out.Write([]byte(env.settings.Secrets.Values(text))); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}
