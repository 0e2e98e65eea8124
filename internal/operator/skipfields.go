package operator

import (
	"context"
	"errors"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// RawField is a field of a text that could not be read.
type RawField struct {
	Name string `json:"name" doc:"Name of its column; empty if it has none"`
	Text string `json:"text" doc:"Its value, without quotes"`
	From int    `json:"from" doc:"Its first character in raw, counted from 0"`
	To   int    `json:"to" doc:"The character after it; the same as from if the field is empty or missing"`
	Bad  bool   `json:"bad" doc:"The mistake is in it"`
}

const shownFields = 1_000

// SplitSkip is Skip with the fields of a text that could not be read. It parses the stored job definition.
func (s *skips) SplitSkip(ctx context.Context, id int64) (*SkipView, error) {
	view, item, exec, err := s.skip(ctx, id)
	if err != nil || item.Raw == nil || item.Raw.IsHidden() {
		return view, err
	}
	fields, err := s.split(exec, item)
	if err != nil {
		view.NoFields = err.Error()
		return view, nil
	}
	view.addFields(fields, item)
	return view, nil
}

// split uses the definition of the execution, as the file may have changed.
func (s *skips) split(exec *core.JobExecution, item *core.SkippedItem) ([]itemextra.Field, error) {
	if exec.Definition.Text == "" {
		return nil, errors.New("the execution has no stored job definition")
	}
	file, _, err := s.jobs.storedFile(exec.Definition, exec.JobName)
	if err != nil {
		return nil, err
	}
	return file.SplitRaw(exec.Params, item.Step, *item.Raw)
}

func (v *SkipView) addFields(fields []itemextra.Field, item *core.SkippedItem) {
	text, place := item.Raw.Text, item.Fault
	if item.Truncated && int64(len(text)) < item.Raw.Length && len(fields) > 0 { // its last field may be cut
		fields, v.MoreFields = fields[:len(fields)-1], true
	}
	bytes, characters := 0, 0
	at := func(offset int) int {
		if offset < bytes {
			bytes, characters = 0, 0
		}
		characters, bytes = characters+utf8.RuneCountInString(text[bytes:offset]), offset
		return characters
	}
	for i, f := range fields {
		if i == shownFields {
			v.MoreFields = true
			return
		}
		one := RawField{Name: f.Name, Text: f.Text, From: at(f.From), To: at(f.To)}
		one.Bad = i+1 == place.Column || one.From < place.To && one.To > place.From
		v.Fields = append(v.Fields, one)
	}
	if place.Column > len(fields) && !v.MoreFields {
		end := at(len(text))
		v.Fields = append(v.Fields, RawField{Name: place.Field, From: end, To: end, Bad: true})
	}
}

// HideFields removes the fields of a text in which a secret is masked: they may have parts of it.
func (v *SkipView) HideFields() {
	if v.Fields != nil {
		v.Fields, v.MoreFields, v.NoFields = nil, false, "a secret in it is masked"
	}
}
