package console

import (
	"cmp"
	"errors"
	"slices"
	"strconv"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type partsView struct {
	head
	Steps []choice
	Step  string
	Of    string
	// Counts are the states with their numbers, for the bar.
	Counts []partCount
	Parts  []partLine
	// Left: only those that are not complete are shown.
	Left     bool
	LeftLink string
	Orders   []choice
	Next     string
	First    string
}

type partLine struct {
	stepLine
	Worker   string
	Assigned string
}

const partsPage = 200

func (v ofExecution) parts() (*page, error) {
	shown, h, err := v.tab("parts", operator.ShowRequest{})
	if err != nil {
		return nil, err
	}
	req := operator.PartsRequest{
		Execution: shown.ID, Step: v.text("step"), Order: ports.PartOrder(cmp.Or(v.text("order"), string(ports.PartsByStatus))), Left: v.text("left") == "true",
		After: v.text("after"), Limit: partsPage,
	}
	found, err := v.Service.Parts(v.r.Context(), req)
	for tries := 0; err != nil && tries < 3; tries++ { // a wrong value is left out
		wrong, is := errors.AsType[*operator.RequestError](err)
		if !is {
			return nil, err
		}
		v.mistake(wrong.Field, wrong.Value, wrong.Reason, wrong.Allowed...)
		switch wrong.Field {
		case "step":
			req.Step = ""
		case "order":
			req.Order, req.After = ports.PartsByStatus, ""
		default:
			req.After = ""
		}
		found, err = v.Service.Parts(v.r.Context(), req)
	}
	if err != nil {
		return nil, err
	}
	view := partsView{head: h}
	if found.ID != 0 {
		v.fillParts(&view, found, req)
	}
	return tabPage(shown, "parts", view), nil
}

func (v ofExecution) fillParts(view *partsView, found *operator.PartPage, req operator.PartsRequest) {
	all := append([]operator.PartedStep{found.PartedStep}, found.Others...)
	slices.SortFunc(all, func(a, b operator.PartedStep) int { return cmp.Compare(a.ID, b.ID) })
	for _, s := range all {
		number := strconv.FormatInt(int64(s.ID), 10)
		view.Steps = append(view.Steps, choice{clip(s.Step, shortText), v.with("step", number, "after", ""), s.ID == found.ID})
	}
	of := &operator.PartitionsView{Total: found.Total, Statuses: found.Statuses, Branches: found.Branches}
	view.Step, view.Of, view.Counts = clip(found.Step, shortText), wording.Parts(of, found.Total), partCounts(of)
	for i := range found.Parts {
		p := &found.Parts[i]
		l := partLine{stepLine: v.stepLine(&p.StepView, found.Execution), Worker: clip(p.WorkerName, shortText)}
		if p.Assigned > 1 {
			l.Assigned = strconv.Itoa(p.Assigned) + " times"
		}
		view.Parts = append(view.Parts, l)
	}
	view.Left, view.LeftLink = req.Left, v.with("left", "true", "after", "")
	if req.Left {
		view.LeftLink = v.with("left", "", "after", "")
	}
	for _, order := range []ports.PartOrder{ports.PartsByStatus, ports.PartsByDuration, ports.PartsByNumber} {
		view.Orders = append(view.Orders, choice{string(order), v.with("order", string(order), "after", ""), order == req.Order})
	}
	if found.Next != "" {
		view.Next = v.with("after", found.Next)
	}
	if req.After != "" {
		view.First = v.with("after", "")
	}
}

func partCounts(p *operator.PartitionsView) []partCount {
	const whole = 1000
	var list []partCount
	x := 0
	for _, s := range core.Statuses() {
		if n := p.Statuses[s]; n > 0 {
			width := max(1, n*whole/p.Total)
			list = append(list, partCount{status(s), humanize.Count(n), humanize.Count(n) + " " + string(s), x, width})
			x += width
		}
	}
	return list
}
