package operator

import (
	"context"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/operator/position"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

const (
	lostOwnerText   = ports.LostOwner
	stopRequestText = "stopped on request"
)

func (p *findings) cause() *Cause {
	x := &p.exec
	if x.Status == core.StatusCompleted || !x.Status.IsOver() {
		return nil
	}
	step := p.decidingStep()
	c := &Cause{Kind: CauseError, Error: x.Error}
	if step != nil {
		c.Step, c.Error, c.Class, c.Item = step.Name, step.Error, contextText(step, core.ErrorClassKey), contextText(step, core.ErrorItemKey)
	}
	if c.Step == "" && c.Error == "" {
		return nil
	}
	switch {
	case x.Error == lostOwnerText || c.Error == lostOwnerText:
		c.Kind, c.Owner = CauseOwnerLost, &Owner{Host: x.Owner.Host, PID: x.Owner.PID, LeaseUntil: utc(x.LeaseUntil)}
	case x.Status == core.StatusStopped && x.Error == stopRequestText:
		c.Kind = CauseStopRequested
	case x.Status == core.StatusStopped:
		c.Kind, c.JobError = CauseFlow, x.Error
	case step == nil && x.ExitCode == core.ExitExpectFailed, step != nil && step.ExitCode == core.ExitExpectFailed:
		c.Kind = CauseGate
	case step != nil:
		c.Kind = CauseStep
		if own := strings.TrimPrefix(x.Error, "step "+c.Step+": "); own != c.Error {
			c.JobError = own
		}
	}
	return c
}

// lasting is the item that fails again as long as the input is the same, or "".
func (c *Cause) lasting() string {
	if slices.Contains([]exception.Class{exception.ClassParse, exception.ClassValidate, exception.ClassInvalidItem}, exception.Class(c.Class)) {
		return c.Item
	}
	return ""
}

func (p *findings) decidingStep() *core.StepExecution {
	var found *core.StepExecution
	for i := range p.own {
		s := &p.own[i]
		if s.Error == "" || s.Status == core.StatusCompleted || s.Status == core.StatusStopped && p.exec.Status != core.StatusStopped {
			continue
		}
		if strings.HasPrefix(p.exec.Error, "step "+s.Name+": ") {
			return s
		}
		if found == nil {
			found = s
		}
	}
	return found
}

func contextText(s *core.StepExecution, key string) string {
	if s.Context == nil {
		return ""
	}
	value, _ := s.Context.Get(key)
	text, _ := value.(string) //nolint:errcheck // absent is empty
	return text
}

func (p *findings) files() []WrittenFile {
	var files []WrittenFile
	for _, s := range p.own {
		if s.ExitCode == core.ExitNoop {
			continue
		}
		writer := 0
		for _, u := range p.uses {
			if u.Step != s.Name || u.Kind != registry.KindWriter {
				continue
			}
			if u.File && u.Target != "" {
				file := WrittenFile{Step: s.Name, Path: u.Target, InView: s.Status == core.StatusCompleted}
				if part, n, ok := position.File(s.Position, writer); ok && !file.InView {
					file.Part, file.Bytes = u.Target+part, &n
				} else if n, ok := p.bytesOfParts(s.Name, writer); ok && !file.InView {
					file.Part, file.Bytes = u.Target+".part.*", &n
				}
				files = append(files, file)
			}
			writer++
		}
	}
	return files
}

// bytesOfParts adds up the committed bytes of a file that partitions write together (rule C15w).
func (p *findings) bytesOfParts(step string, writer int) (sum int64, any bool) {
	for name, h := range p.history {
		if strings.HasPrefix(name, core.PartName(step, "")) {
			_, n, ok := position.File(h.Last.Position, writer)
			sum, any = sum+n, any || ok
		}
	}
	return sum, any
}

func (p *findings) paths() []DecisionPath {
	var list []DecisionPath
	for _, d := range p.decisions {
		if d.Kind == "when" {
			list = append(list, DecisionPath{Element: d.Element, Verdict: core.ExitNoop})
			continue
		}
		list = append(list, DecisionPath{d.Element, d.Verdict, p.leadsTo(d.Element, d.Verdict)})
	}
	return list
}

func (p *findings) leadsTo(decision, verdict string) string {
	if p.job == nil {
		return ""
	}
	e, ok := findElement(p.job.Flow, decision)
	if !ok {
		return ""
	}
	target, ok := model.Next(e.Edges(), core.StatusCompleted, verdict)
	switch {
	case !ok:
		return ""
	case target.Kind == model.TargetElement:
		return target.Name
	}
	return string(target.Kind)
}

func findElement(f model.Flow, name string) (model.Element, bool) {
	for _, e := range f.Elements {
		if e.ElementName() == name {
			return e, true
		}
		for _, inner := range model.Flows(e) {
			if found, ok := findElement(inner, name); ok {
				return found, true
			}
		}
	}
	return nil, false
}

func (p *findings) gates() []Gate {
	var list []Gate
	for _, s := range p.own {
		if s.Gate != "" {
			list = append(list, Gate{s.Name, s.Gate, s.ExitCode != core.ExitExpectFailed})
		}
	}
	if p.exec.Gate != "" {
		list = append(list, Gate{"", p.exec.Gate, p.exec.ExitCode != core.ExitExpectFailed})
	}
	return list
}

// elsewhere is the state of a step in the database of its rows: after a kill
// the history may be older (rule C18).
type elsewhere struct {
	database string
	// err is why the database cannot be queried.
	err error
}

func (p *findings) findElsewhere(ctx context.Context) {
	p.elsewhere = map[string]elsewhere{}
	if p.checkpoints == nil {
		return
	}
	for name, h := range p.history {
		database := p.writesTo(name)
		if isFinal(h.Last) || h.Last.HasCommitted() || database == "" || database == p.records.Database() {
			continue
		}
		found, err := p.checkpoints.HasCommitted(ctx, database, p.exec.InstanceID, name, h.Last.First)
		if found || err != nil {
			p.elsewhere[name] = elsewhere{database, err}
		}
	}
}

func (p *findings) writesTo(name string) string {
	step, _, _ := strings.Cut(name, ":")
	for _, u := range p.uses {
		if u.Step == step && u.Kind == registry.KindWriter && u.Database != "" {
			return u.Database
		}
	}
	return ""
}

func (p *findings) committedIn(s core.StepExecution) (database, problem string) {
	e, ok := p.elsewhere[s.Name]
	if !ok || p.history[s.Name].Last.ID != s.ID {
		return "", ""
	}
	if e.err != nil {
		return "", e.err.Error()
	}
	return e.database, ""
}
