package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// readSkips is the number of skipped items that one page of groups reads.
const readSkips = 10_000

// SkipGroupsRequest selects skipped items of all executions, the newest first; zero fields select all.
type SkipGroupsRequest struct {
	Since time.Time
	Job   string
	Step  string
	Phase core.Phase
	Class string
	// Message is a group's.
	Message string
	// Text is in the error, in upper or lower case.
	Text string
	// Before is the key of the next page.
	Before int64
}

// SkipGroupPage are groups of skipped items, the most frequent first.
type SkipGroupPage struct {
	Groups []SkipGroup `json:"groups"`
	Read   int         `json:"read" doc:"Items of the window that this page has read, with and without the filters: at most 10,000"`
	// SearchedTo and Next are set if the window has earlier items.
	SearchedTo time.Time `json:"searched_to,omitzero" doc:"When the last of them was skipped, if there may be earlier ones"`
	Next       int64     `json:"next,omitempty" doc:"before of the page with earlier items; absent if there are none"`
}

// SkipGroup are the items of one step with the same phase, class and message.
type SkipGroup struct {
	Job     string     `json:"job"`
	Step    string     `json:"step" doc:"With the items of its partitions"`
	Phase   core.Phase `json:"phase"`
	Class   string     `json:"class"`
	Message string     `json:"message" doc:"The error without its place in a file; numbers are #, and quoted values are …"`
	Count   int64      `json:"count"`
	Left    int64      `json:"left" doc:"Those that no execution has redriven"`
	First   time.Time  `json:"first"`
	Last    time.Time  `json:"last"`
	Example int64      `json:"example" doc:"Number of the newest item"`
	// Executions are the newest ones.
	Executions []SkipsOf `json:"executions" doc:"At most 5, the newest first"`
	More       int       `json:"more_executions,omitempty" doc:"Number of further executions"`
}

// SkipsOf are the items of a group in one execution.
type SkipsOf struct {
	Execution core.JobExecutionID `json:"execution"`
	Count     int64               `json:"count"`
}

// skipGroups groups skipped items over all jobs.
type skipGroups struct {
	judge   *judge
	records ports.JobHistory // may be nil
}

// SkipGroups returns a page of groups.
func (s *skipGroups) SkipGroups(ctx context.Context, req SkipGroupsRequest) (*SkipGroupPage, error) {
	if err := s.judge.schema.Prepare(ctx); err != nil {
		return nil, err
	}
	switch req.Phase {
	case "", core.PhaseRead, core.PhaseProcess, core.PhaseWrite:
	default:
		return nil, &RequestError{Field: "phase", Value: string(req.Phase), Reason: "no such phase", Allowed: []string{string(core.PhaseRead), string(core.PhaseProcess), string(core.PhaseWrite)}}
	}
	page := &SkipGroupPage{Groups: []SkipGroup{}}
	if s.records == nil {
		return page, nil
	}
	found, err := patiently(ctx, func(ctx context.Context) (ports.SkipGroups, error) {
		return s.records.SkipGroups(ctx, ports.SkipGroupFilter{Since: req.Since, Before: req.Before, Limit: readSkips})
	})
	if err != nil {
		return nil, fmt.Errorf("skipped items of all jobs: %w", err)
	}
	page.Read, page.Next, page.SearchedTo = found.Read, found.Reached, utc(found.ReachedAt)
	page.add(found.Groups, req)
	return page, nil
}

type skipGroupKey struct {
	job, step    string
	phase        core.Phase
	class, about string
}

func (p *SkipGroupPage) add(found []ports.SkipGroup, req SkipGroupsRequest) {
	place := map[skipGroupKey]int{}
	counts := map[skipGroupKey]map[core.JobExecutionID]int64{}
	for i := range found {
		g := &found[i]
		step, _, _ := strings.Cut(g.Step, ":")
		key := skipGroupKey{g.JobName, step, g.Phase, g.Class, messageOf(g.Error)}
		if !key.isSelected(req) || !strings.Contains(strings.ToLower(g.Error), strings.ToLower(req.Text)) {
			continue
		}
		at, known := place[key]
		if !known {
			at = len(p.Groups)
			place[key], counts[key] = at, map[core.JobExecutionID]int64{}
			p.Groups = append(p.Groups, SkipGroup{
				Job: key.job, Step: key.step, Phase: key.phase, Class: key.class, Message: key.about, First: utc(g.First), Last: utc(g.Ends), Executions: []SkipsOf{},
			})
		}
		group := &p.Groups[at]
		group.Count, group.Left, group.Example = group.Count+g.Count, group.Left+g.Left, max(group.Example, g.Last)
		if g.First.Before(group.First) {
			group.First = utc(g.First)
		}
		if g.Ends.After(group.Last) {
			group.Last = utc(g.Ends)
		}
		counts[key][g.Execution] += g.Count
	}
	for key, at := range place {
		p.Groups[at].executions(counts[key])
	}
	slices.SortFunc(p.Groups, func(a, b SkipGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(b.Example, a.Example))
	})
}

func (k skipGroupKey) isSelected(req SkipGroupsRequest) bool {
	return (req.Job == "" || req.Job == k.job) && (req.Step == "" || req.Step == k.step) && (req.Phase == "" || req.Phase == k.phase) &&
		(req.Class == "" || req.Class == k.class) && (req.Message == "" || req.Message == k.about)
}

func (g *SkipGroup) executions(counts map[core.JobExecutionID]int64) {
	const most = 5
	for id, n := range counts {
		g.Executions = append(g.Executions, SkipsOf{id, n})
	}
	slices.SortFunc(g.Executions, func(a, b SkipsOf) int { return cmp.Compare(b.Execution, a.Execution) })
	if g.More = max(0, len(g.Executions)-most); g.More > 0 {
		g.Executions = g.Executions[:most]
	}
}

// messageOf is an error without the parts that differ from item to item: a place such as in.csv:7, numbers
// and quoted values.
func messageOf(text string) string {
	if place, rest, is := strings.Cut(text, ": "); is && !strings.Contains(place, " ") && strings.ContainsAny(place, "0123456789") && strings.Contains(place, ":") {
		text = rest
	}
	var b strings.Builder
	quoted, number := false, false
	for i := range len(text) {
		c := text[i]
		digit := c >= '0' && c <= '9'
		switch {
		case c == '"':
			if quoted = !quoted; quoted {
				b.WriteString("\"…")
			} else {
				b.WriteByte('"')
			}
		case quoted:
		case digit && !number:
			b.WriteByte('#')
		case !digit:
			b.WriteByte(c)
		}
		number = digit && !quoted
	}
	return b.String()
}
