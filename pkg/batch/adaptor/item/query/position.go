package query

import (
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type position struct {
	Read int64      `json:"read"`
	Key  []keyValue `json:"key"`
	// Since is nil for all rows.
	Since    *sinceRange `json:"since,omitempty"`
	Snapshot bool        `json:"snapshot,omitempty"`
}

type keyValue struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Value string `json:"value"`
	Desc  bool   `json:"desc,omitempty"`
}

type rowMark struct {
	read int64
	key  []row.Value
}

func (k *keyValue) value() (row.Value, error) {
	kind, ok := row.KindByName(k.Kind)
	if !ok {
		return row.Value{}, fmt.Errorf("kind %q is unknown", k.Kind)
	}
	return (&row.Field{Name: k.Name, Kind: kind, Nulls: []string{}}).Parse(k.Value)
}

func stored(name string, v row.Value) keyValue {
	return keyValue{Name: name, Kind: v.Kind().String(), Value: v.String()}
}

// sinceRange is stored with the position, so that all attempts have it; the next instance begins after
// Until (rule IL1).
type sinceRange struct {
	// From is the least value that is read, or, without With, the greatest that is not; nil means no bound.
	From *keyValue `json:"from,omitempty"`
	With bool      `json:"with,omitempty"`
	// Until is the greatest value that is read; nil means that there were no rows.
	Until *keyValue `json:"until,omitempty"`
}

func (s *sinceRange) isEmpty() bool { return s != nil && s.Until == nil }

// refuseResume refuses a restart if rows of a snapshot were or are to be read (rule C15m).
func refuseResume(p position) error {
	switch {
	case p.Read == 0:
		return nil
	case p.Snapshot:
		return fmt.Errorf("cannot restart: %d rows of a snapshot were read, and without a key they cannot be told from the others: "+
			"--from-start reads all rows again, but rows that the step has committed stay, so a target of mode insert would have them twice: "+
			"empty the target first, or write in mode upsert or replace", p.Read)
	}
	return fmt.Errorf("cannot restart: the last commit was at a key, but a snapshot is read from its beginning: restore the key, or restart with --from-start " +
		"after emptying the target, as rows that the step has committed stay")
}
