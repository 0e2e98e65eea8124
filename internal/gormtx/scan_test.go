//test:plain

package gormtx

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"
)

type visit struct {
	Guest person `gorm:"embedded"`
	At    Instant
	Place string
	Times *int64
	Paid  bool
	Share float64
}

func TestRowsAreReadAsGormReadsThem(t *testing.T) {
	t.Parallel()
	db := open(t)
	for _, s := range []string{
		"CREATE TABLE visits (id integer, name text, size integer, at integer, place text, times integer, paid integer, share real, more text)",
		"INSERT INTO visits VALUES (1, 'a', 2, 1700000000000000, 'here', 3, 1, 0.5, 'x'), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
		"INSERT INTO visits VALUES (3, x'62', '12', 1, 7, '8', '1', '0.25', 9), (4, 5, 6, 7, 'there', 0, 0, 2, 'y')",
	} {
		require.NoError(t, db.Exec(s).Error)
	}
	for _, query := range []func() *gorm.DB{
		func() *gorm.DB { return db.Order("id") },
		func() *gorm.DB { return db.Order("id").Where("id > ?", 1).Limit(2) },
		func() *gorm.DB { return db.Select("place", "id").Order("id DESC") },
		func() *gorm.DB { return db.Where("id > 9") },
	} {
		want, got := []visit{}, []visit{{Place: "before"}}
		require.NoError(t, query().Find(&want).Error)
		require.NoError(t, Find(query(), &got))
		require.Equal(t, want, got)
	}
	const text = "SELECT *, 'none' AS unknown FROM visits ORDER BY id"
	want, got := []visit{}, []visit{}
	require.NoError(t, db.Raw(text).Scan(&want).Error)
	require.NoError(t, Scan(db.Raw(text), &got))
	require.Equal(t, want, got)
	require.Equal(t, visit{Guest: person{1, "a", 2}, At: Instant{Time: time.Unix(1700000000, 0).UTC()}, Place: "here", Times: new(int64(3)), Paid: true, Share: .5}, got[0])

	var ids []int64
	require.NoError(t, Scan(db.Raw("SELECT id FROM visits ORDER BY id"), &ids))
	require.Equal(t, []int64{1, 2, 3, 4}, ids)
	var last visit
	require.NoError(t, Scan(db.Raw(text+" DESC LIMIT 1"), &last))
	require.Equal(t, got[3], last)
}

func TestAValueThatAFieldCannotHoldIsAnError(t *testing.T) {
	t.Parallel()
	db := open(t)
	var people []person
	require.ErrorContains(t, Scan(db.Raw("SELECT 'many' AS size"), &people), `"size"`)
	require.ErrorContains(t, Scan(db.Raw("SELECT id FROM nowhere"), &people), "nowhere")
	require.ErrorContains(t, Find(db.Table("nowhere"), &people), "nowhere")
	var visits []visit
	require.ErrorContains(t, Scan(db.Raw("SELECT 'noon' AS at"), &visits), "not a point in time")
	require.ErrorContains(t, Scan(db.Raw("SELECT 1 AS size UNION ALL SELECT abs(-9223372036854775808)"), &people), "overflow", "the second row")
}
