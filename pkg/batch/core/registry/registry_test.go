package registry_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func TestComponentsThatCannotBeAreRefusedTogether(t *testing.T) {
	t.Parallel()
	_, err := registry.New([]registry.Component{
		{Kind: registry.KindTasklet, Name: "a"},
		{Kind: registry.KindTasklet, Name: "a"},
		{Kind: registry.KindReader, Name: "a"},
		{Kind: registry.KindWriter, Name: "b", Config: reflect.TypeFor[int]()},
	}, []registry.NamedItem{{Name: "order"}, {Name: "order"}}, nil)
	require.EqualError(t, err, "item type \"order\" is registered twice\ntasklet \"a\" is registered twice\nwriter \"b\": its config is a int, not a struct")
}

func TestMapChangesACopy(t *testing.T) {
	t.Parallel()
	described, err := registry.New([]registry.Component{{Kind: registry.KindTasklet, Name: "a", Summary: "does"}}, []registry.NamedItem{{Name: "order"}}, nil)
	require.NoError(t, err)
	full := described.Map(func(c registry.Component) registry.Component {
		c.New = func(context.Context, any, registry.BuildContext) (any, error) { return 7, nil }
		return c
	})
	before, ok := described.Component(registry.KindTasklet, "a")
	require.True(t, ok)
	require.Nil(t, before.New)
	after, ok := full.Component(registry.KindTasklet, "a")
	require.True(t, ok)
	require.NotNil(t, after.New)
	require.Equal(t, "does", after.Summary)
	require.Equal(t, described.ItemNames(), full.ItemNames())
}
