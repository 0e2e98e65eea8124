package runtime

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/workslot"
)

func oneSlot() (*heldSlot, chan struct{}) {
	slots := make(chan struct{}, 1)
	slots <- struct{}{}
	return newHeldSlot(slots), slots
}

func isFree(slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		<-slots
		return true
	default:
		return false
	}
}

func TestTheSlotIsFreeWhileAllBranchesThatAreLeftWait(t *testing.T) {
	t.Parallel()
	p, slots := oneSlot()
	begin, end := p.Fork()
	begin(t.Context())
	begin(t.Context())
	p.Leave()
	require.False(t, isFree(slots), "one branch works")
	p.Leave()
	require.True(t, isFree(slots), "both wait")
	require.NoError(t, p.Return(t.Context()))
	require.False(t, isFree(slots), "one works again")
	end()
	require.True(t, isFree(slots), "what is left waits")
	begin(t.Context())
	require.False(t, isFree(slots), "a third one works")
	end()
	require.True(t, isFree(slots))
	require.NoError(t, p.Return(t.Context()))
	end()
	require.False(t, isFree(slots), "who waited for the branches works")
	p.end()
	require.True(t, isFree(slots))
}

func TestBranchesThatReturnTogetherTakeOneSlot(t *testing.T) {
	t.Parallel()
	p, slots := oneSlot()
	begin, end := p.Fork()
	const branches = 4
	for range branches {
		begin(t.Context())
		p.Leave()
	}
	slots <- struct{}{} // other work
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.Return(gone), context.Canceled)
	over := make(chan error, branches)
	for range branches - 1 {
		go func() { over <- p.Return(t.Context()) }()
	}
	<-slots
	for range branches - 1 {
		require.NoError(t, <-over)
	}
	require.False(t, isFree(slots))
	for range branches {
		end()
	}
	p.end()
	require.True(t, isFree(slots))
	require.Empty(t, slots)
}

func TestBranchesOfABranchHoldTheSlotOnce(t *testing.T) {
	t.Parallel()
	p, slots := oneSlot()
	ctx := workslot.WithSlot(t.Context(), p)
	begin, end := workslot.ForkSlot(ctx)
	begin()
	begin()
	p.Leave()
	inner, innerEnd := workslot.ForkSlot(ctx)
	inner()
	inner()
	p.Leave()
	require.False(t, isFree(slots))
	innerEnd()
	require.True(t, isFree(slots))
	require.NoError(t, p.Return(ctx))
	innerEnd()
	require.False(t, isFree(slots))
	end()
	require.True(t, isFree(slots))
	require.NoError(t, p.Return(ctx))
	end()
	workslot.LeaveSlot(ctx)
	workslot.LeaveSlot(ctx)
	require.True(t, isFree(slots))
	require.NoError(t, workslot.WithoutSlot(ctx, func() error { return nil }))
	require.True(t, isFree(slots), "it left for good")
	none, noEnd := workslot.ForkSlot(t.Context())
	none()
	noEnd()
}
