package batch_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

func TestTheErrorsOfTheFacadeSayWhatMayBeDone(t *testing.T) {
	t.Parallel()
	cause := errors.New("odd")
	for _, c := range []struct {
		err         error
		retry, skip bool
		class       exception.Class
		consumed    bool
	}{
		{err: batch.Retryable("call", cause), retry: true},
		{err: batch.Skippable("check", cause), skip: true},
		{err: batch.InvalidItem(cause), skip: true, class: exception.ClassInvalidItem},
		{err: batch.Consumed(batch.Meta{Path: "in", Line: 3}, batch.InvalidItem(cause)), skip: true, class: exception.ClassInvalidItem, consumed: true},
	} {
		require.ErrorIs(t, c.err, cause)
		require.Equal(t, c.retry, exception.IsRetryable(c.err), c.err)
		require.Equal(t, c.skip, exception.IsSkippable(c.err), c.err)
		require.Equal(t, c.class, exception.ClassOf(c.err), c.err)
		require.Equal(t, c.consumed, item.IsConsumed(c.err), c.err)
	}
}
