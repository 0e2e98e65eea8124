package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// FoundTasks is a page of a search.
type FoundTasks struct {
	Tasks []task.Task
	// Next is the Before of the next page, which may have none; 0 means that
	// all was searched.
	Next task.ID
	// Waits is why placed ones wait.
	Waits map[task.ID]string
}

const (
	searchTime = 80 * time.Millisecond
	mostText   = 200
)

// Search returns a page of tasks, newest first. It ends after about a tenth of a
// second.
func (s *TaskService) Search(ctx context.Context, f task.Filter) (*FoundTasks, error) {
	if err := checkFilter(f); err != nil {
		return nil, err
	}
	var found FoundTasks
	var err error
	if found.Tasks, found.Next, err = s.tasks.Search(ctx, f, searchTime); err != nil {
		return nil, refusalOf(err)
	}
	found.Waits, err = s.Waits(ctx, found.Tasks)
	return &found, err
}

func checkFilter(f task.Filter) error {
	var err error
	switch {
	case f.State != "" && !slices.Contains(taskports.States(), f.State):
		err = fmt.Errorf("state: there is no %q (there are: %q)", f.State, taskports.States())
	case f.Limit < 0:
		err = fmt.Errorf("limit: it is %d, but must not be negative", f.Limit)
	case !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until):
		err = errors.New("until: it is not after since")
	case !utf8.ValidString(f.Text) || strings.ContainsRune(f.Text, 0):
		err = errors.New("text: it is not UTF-8 text, or has a NUL character")
	case utf8.RuneCountInString(f.Text) > mostText:
		err = fmt.Errorf("text: at most %d characters", mostText)
	default:
		return nil
	}
	return refuse(refusal.Invalid, err)
}

// MostLog is the largest page of a log.
const MostLog = 64 << 10

// Log returns a page of an output of a task; Limit 0 means MostLog.
func (s *TaskService) Log(ctx context.Context, f taskports.LogFilter) (*taskports.TaskLog, error) {
	if f.Limit = cmp.Or(f.Limit, MostLog); f.Limit < 0 || f.Limit > MostLog || f.From < 0 || f.Attempt < 0 {
		return nil, refuse(refusal.Invalid, fmt.Errorf("from and attempt must not be negative, and limit must be from 1 to %d", MostLog))
	}
	f.Mask = s.mask
	log, err := s.tasks.Log(ctx, f)
	return log, refusalOf(err)
}
