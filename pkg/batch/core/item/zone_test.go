package item_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Rule D5.
func TestAGoTypeReadsLocalTimesInTheZoneOfTheJob(t *testing.T) {
	t.Parallel()
	type event struct {
		At   time.Time
		Then time.Time `format:"dd.MM.yyyy HH:mm"`
		Day  row.Date
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	plain := item.TypeOf[event]("event")
	zoned := item.InZone(plain, berlin)
	require.NoError(t, item.Assignable(plain, zoned))
	for name, text := range map[string]string{"at": "2026-07-01 08:00:00", "then": "01.07.2026 08:00"} {
		v, err := zoned.Schema().Field(zoned.Schema().Index(name)).Parse(text)
		require.NoError(t, err)
		require.Equal(t, time.Date(2026, 7, 1, 6, 0, 0, 0, time.UTC), v.Time())
		v, err = plain.Schema().Field(plain.Schema().Index(name)).Parse(text)
		require.NoError(t, err)
		require.Equal(t, time.Date(2026, 7, 1, 8, 0, 0, 0, time.UTC), v.Time(), "the type itself stays")
	}
	require.Same(t, plain, item.InZone(plain, time.UTC))
}
