package conformance_test

import (
	"fmt"
	"slices"

	"gopkg.in/yaml.v3"
)

type action struct {
	Op      string `yaml:"op"`
	As      string `yaml:"as"`
	Target  string `yaml:"target"`
	Job     string `yaml:"job"` // another job's name
	JobName string `yaml:"job_name"`

	Params  parameters `yaml:"params"`
	Params2 parameters `yaml:"params2"`

	// Of launches.
	Async     bool   `yaml:"async"`
	FromStart bool   `yaml:"from_start"` // ours
	Executor  string `yaml:"executor"`
	Grid      *int   `yaml:"grid"`
	Count     int    `yaml:"count"`
	Step      string `yaml:"step"`

	// Of stop and the like.
	Wait     bool   `yaml:"wait"`
	StopHook string `yaml:"stop_hook"`

	// Of seeds.
	Status      string            `yaml:"status"`
	ExitCode    string            `yaml:"exit_code"`
	Ended       *bool             `yaml:"ended"`
	Steps       map[string]string `yaml:"steps"`
	JobContext  contextValues     `yaml:"job_context"`
	StepContext contextValues     `yaml:"step_context"`
	Lease       string            `yaml:"lease"`

	// Of partitions.
	Previous             []string  `yaml:"previous"`
	NewJobExecution      bool      `yaml:"new_job_execution"`
	AllowStartIfComplete bool      `yaml:"allow_start_if_complete"`
	PoolAccepts          *int      `yaml:"pool_accepts"`
	Counters             [][]int64 `yaml:"counters"`
	Statuses             []string  `yaml:"statuses"`
	ExitCodes            []string  `yaml:"exit_codes"`

	// Of promotions; Statuses and the contexts as well.
	Keys   promoted `yaml:"keys"`
	Strict bool     `yaml:"strict"`

	Cases  [][]string      `yaml:"cases"`
	Expect lifeExpectation `yaml:"expect"`

	keys []string
}

func (a *action) UnmarshalYAML(node *yaml.Node) error {
	type plain action
	if err := decodeNode(node, (*plain)(a)); err != nil {
		return err
	}
	for i := 0; i < len(node.Content); i += 2 {
		a.keys = append(a.keys, node.Content[i].Value)
	}
	return nil
}

// operation is the function of an op, and the keys that it knows in addition to op, as, target and expect.
type operation struct {
	do   func(r *lifeRun, a *action) *seen
	keys []string
}

func operations() map[string]operation {
	launching := []string{"params", "job", "job_name", "async", "executor", "grid", "from_start"}
	seeding := []string{"params", "job", "status", "exit_code", "ended", "steps", "job_context", "step_context", "lease"}
	cli := []string{"params"}
	return map[string]operation{
		"launch":            {(*lifeRun).launchOp, launching},
		"start":             {(*lifeRun).launchOp, launching},
		"start_next":        {(*lifeRun).nextOp, launching},
		"next_instance":     {(*lifeRun).nextOp, launching},
		"launch_next":       {(*lifeRun).nextOp, launching},
		"restart":           {(*lifeRun).restartOp, []string{"params", "async", "executor", "grid", "from_start"}},
		"wait":              {(*lifeRun).waitOp, nil},
		"stop":              {(*lifeRun).stopOp, []string{"wait", "stop_hook"}},
		"abandon":           {(*lifeRun).abandonOp, nil},
		"recover":           {(*lifeRun).recoverOp, nil},
		"race_launch":       {(*lifeRun).raceOp, []string{"count", "params"}},
		"run_step":          {(*lifeRun).runStepOp, []string{"step", "params"}},
		"seed":              {(*lifeRun).seedOp, seeding},
		"seed_instance":     {(*lifeRun).seedInstanceOp, []string{"params"}},
		"set_status":        {(*lifeRun).setStatusOp, []string{"status", "exit_code", "ended"}},
		"end":               {(*lifeRun).endOp, []string{"status", "exit_code"}},
		"same_instance":     {(*lifeRun).sameInstanceOp, []string{"params", "params2"}},
		"find_instance":     {(*lifeRun).findInstanceOp, []string{"params", "job"}},
		"delete_instance":   {(*lifeRun).deleteInstanceOp, []string{"params"}},
		"inspect":           {(*lifeRun).inspectOp, []string{"job", "job_name"}},
		"update_step":       {(*lifeRun).updateStepOp, []string{"step"}},
		"validate_config":   {(*lifeRun).validateConfigOp, nil},
		"validate":          {(*lifeRun).validateOp, []string{"params"}},
		"next_params":       {(*lifeRun).nextParamsOp, []string{"params"}},
		"promote":           {(*lifeRun).promoteOp, []string{"keys", "statuses", "strict", "step_context", "job_context", "exit_code"}},
		"save_contexts":     {(*lifeRun).saveContextsOp, []string{"job_context", "step_context"}},
		"reload":            {(*lifeRun).reloadOp, nil},
		"split":             {(*lifeRun).splitOp, []string{"grid", "previous", "new_job_execution", "allow_start_if_complete"}},
		"aggregate":         {(*lifeRun).aggregateOp, []string{"counters", "statuses", "exit_codes"}},
		"launch_partitions": {(*lifeRun).launchPartitionsOp, []string{"grid", "pool_accepts"}},
		"cli_abandon":       {onTarget("abandon"), nil},
		"cli_restart":       {onTarget("restart"), nil},
		"cli_stop":          {onTarget("stop"), nil},
		"cli_recover":       {(*lifeRun).cliRecoverOp, nil},
		"cli_next":          {(*lifeRun).cliNextOp, cli},
		"cli_start":         {(*lifeRun).cliStartOp, cli},
		"cli_launch":        {(*lifeRun).cliStartOp, cli},
		"exit_and":          {tableOp(func(t *tables, rows [][]string) { t.ExitAnd = rows }), []string{"cases"}},
		"status_max":        {tableOp(func(t *tables, rows [][]string) { t.StatusMax = rows }), []string{"cases"}},
		"severity_order":    {tableOp(func(t *tables, rows [][]string) { t.SeverityOrder = rows }), []string{"cases"}},
		"pattern_order":     {tableOp(func(t *tables, rows [][]string) { t.PatternOrder = rows }), []string{"cases"}},
		"pattern_match":     {tableOp(func(t *tables, rows [][]string) { t.PatternMatch = rows }), []string{"cases"}},
	}
}

func (a *action) validate() error {
	op, known := operations()[a.Op]
	if !known {
		return fmt.Errorf("the op is unknown (known: %v)", sortedKeys(operations()))
	}
	for _, key := range a.keys {
		if !slices.Contains(append([]string{"op", "as", "target", "expect"}, op.keys...), key) {
			return fmt.Errorf("key %s is not of this op (known: %v)", key, op.keys)
		}
	}
	return a.Expect.validate()
}
