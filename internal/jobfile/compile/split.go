package compile

import (
	"fmt"

	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/internal/jobfile/bind"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// SplitRaw splits the text of an item that a step could not read, as its reader does; nil if its texts
// have no columns.
func SplitRaw(f *tree.File, params core.Parameters, step string, raw item.RawText) (fields []itemextra.Field, err error) {
	s, err := chunkStep(f, step)
	if err != nil {
		return nil, err
	}
	var reader *tree.ComponentUse
	for _, u := range tree.WithNested(s.Reader) {
		if _, splits := u.Cfg.(itemextra.Splitter); !splits {
			continue
		}
		if reader != nil {
			return nil, fmt.Errorf("step %s has several readers, and the one of this text is unknown", s.Name)
		}
		reader = u
	}
	if reader == nil {
		return nil, nil
	}
	problems := f.Doc.NewCollector()
	splitter, ok := bind.Config(f, reader, bind.Launch(f, params), problems).(itemextra.Splitter)
	if err := problems.Err(); err != nil || !ok {
		return nil, err
	}
	err = panics.Guard(func() (err error) {
		fields, err = splitter.SplitRaw(raw)
		return err
	})
	return fields, err
}
