package exception_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

func TestTheEndOfAGoroutineIsAnErrorWithItsStack(t *testing.T) {
	t.Parallel()
	err := panics.GuardApart(func() error {
		runtime.Goexit()
		return nil
	})
	var ended *panics.PanicError
	require.ErrorAs(t, err, &ended)
	require.ErrorContains(t, err, "a component ended its goroutine (with runtime.Goexit")
	require.Contains(t, string(ended.Stack), "goroutine_test.go")
	require.False(t, exception.IsSkippable(err) || exception.IsRetryable(err))

	require.ErrorContains(t, panics.GuardApart(func() error { panic("x") }), "panic: x")
	require.EqualError(t, panics.GuardApart(func() error { return errors.New("e") }), "e")
	require.NoError(t, panics.GuardApart(func() error { return nil }))
}
