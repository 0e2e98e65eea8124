package txtest

import (
	"context"
	"errors"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

var propagation = []test{
	{"work outside of a transaction commits whatever becomes of it, where the database allows", outsideSurvives},
	{"REQUIRED begins a transaction that commits with its work", func(b *bed) {
		require.NoError(b, b.do(b.Context(), tx.Required, func(ctx context.Context) error {
			require.NoError(b, b.insert(ctx, 1))
			b.committed()
			return nil
		}))
		b.committed(1)
	}},
	{"no propagation means REQUIRED", func(b *bed) {
		require.ErrorIs(b, b.do(b.Context(), "", b.failing(1)), errWork)
		b.committed()
	}},
	{"REQUIRED joins: both parts roll back together", func(b *bed) {
		err := b.do(b.Context(), tx.Required, func(ctx context.Context) error {
			require.NoError(b, b.do(ctx, tx.Required, func(inner context.Context) error {
				require.Same(b, tx.ConnOf(ctx, b.db), tx.ConnOf(inner, b.db))
				return b.insert(inner, 1)
			}))
			return b.failing(2)(ctx)
		})
		require.ErrorIs(b, err, errWork)
		b.committed()
	}},
	{"joined work that fails dooms the owner, which learns the cause", func(b *bed) {
		err := b.do(b.Context(), tx.Required, func(ctx context.Context) error {
			require.NoError(b, b.insert(ctx, 1))
			require.ErrorIs(b, b.do(ctx, tx.Required, b.failing(2)), errWork)
			return nil // the owner assumes that it may continue
		})
		doomed, ok := errors.AsType[*tx.RollbackOnlyError](err)
		require.True(b, ok, "%v", err)
		require.ErrorIs(b, doomed, errWork)
		b.committed()
	}},
	{"REQUIRES_NEW survives the rollback of the transaction outside", requiresNewSurvives},
	{"REQUIRES_NEW that fails leaves the transaction outside alone", func(b *bed) {
		if b.db.SingleWriter() {
			b.singleWriter(tx.RequiresNew)
			return
		}
		require.NoError(b, b.do(b.Context(), tx.Required, func(ctx context.Context) error {
			require.NoError(b, b.insert(ctx, 1))
			require.ErrorIs(b, b.do(ctx, tx.RequiresNew, b.failing(2)), errWork)
			return b.insert(ctx, 3)
		}))
		b.committed(1, 3)
	}},
	{"REQUIRES_NEW begins where there is none", func(b *bed) {
		require.NoError(b, b.do(b.Context(), tx.RequiresNew, b.inserting(1)))
		b.committed(1)
	}},
	{"REQUIRES_NEW that only reads goes beside a writer", func(b *bed) {
		require.NoError(b, b.do(b.Context(), tx.Required, func(ctx context.Context) error {
			require.NoError(b, b.insert(ctx, 1))
			read := tx.Attr{Propagation: tx.RequiresNew, ReadOnly: true}
			return b.manager.Do(ctx, read, func(ctx context.Context) error {
				require.Empty(b, b.rows(tx.ConnOf(ctx, b.db)))
				return nil
			})
		}))
		b.committed(1)
	}},
	{"NESTED that fails rolls back to its savepoint, and the rest commits", func(b *bed) {
		require.NoError(b, b.do(b.Context(), tx.Required, func(ctx context.Context) error {
			require.NoError(b, b.insert(ctx, 1))
			require.ErrorIs(b, b.do(ctx, tx.Nested, b.failing(2)), errWork)
			require.Equal(b, []int{1}, b.rows(tx.ConnOf(ctx, b.db)))
			require.NoError(b, b.do(ctx, tx.Nested, b.inserting(3)))
			return b.insert(ctx, 4)
		}))
		b.committed(1, 3, 4)
	}},
	{"NESTED recovers from a statement that failed", func(b *bed) {
		require.NoError(b, b.do(b.Context(), tx.Required, func(ctx context.Context) error {
			require.NoError(b, b.insert(ctx, 1))
			require.Error(b, b.do(ctx, tx.Nested, b.inserting(1))) // a duplicate
			return b.insert(ctx, 2)
		}))
		b.committed(1, 2)
	}},
	{"NESTED in NESTED rolls back its own part only", nestedInNested},
	{"NESTED disappears when the owner rolls back", func(b *bed) {
		err := b.do(b.Context(), tx.Required, func(ctx context.Context) error {
			require.NoError(b, b.do(ctx, tx.Nested, b.inserting(1)))
			return errWork
		})
		require.ErrorIs(b, err, errWork)
		b.committed()
	}},
	{"NESTED begins where there is none", func(b *bed) {
		require.ErrorIs(b, b.do(b.Context(), tx.Nested, b.failing(1)), errWork)
		require.NoError(b, b.do(b.Context(), tx.Nested, b.inserting(2)))
		b.committed(2)
	}},
	{"work joined to NESTED that fails dooms the savepoint only", func(b *bed) {
		require.NoError(b, b.do(b.Context(), tx.Required, func(ctx context.Context) error {
			err := b.do(ctx, tx.Nested, func(ctx context.Context) error {
				require.ErrorIs(b, b.do(ctx, tx.Required, b.failing(1)), errWork)
				return nil
			})
			_, doomed := errors.AsType[*tx.RollbackOnlyError](err)
			require.True(b, doomed, "%v", err)
			return b.insert(ctx, 2)
		}))
		b.committed(2)
	}},
	{"SUPPORTS joins a transaction", func(b *bed) {
		err := b.do(b.Context(), tx.Required, func(ctx context.Context) error {
			require.NoError(b, b.do(ctx, tx.Supports, b.inserting(1)))
			return errWork
		})
		require.ErrorIs(b, err, errWork)
		b.committed()
	}},
	{"SUPPORTS runs without one where there is none", func(b *bed) {
		require.ErrorIs(b, b.do(b.Context(), tx.Supports, b.failing(1)), errWork)
		b.committed(1)
	}},
	{"NOT_SUPPORTED writes outside the suspended transaction", notSupported},
	{"NOT_SUPPORTED gives the transaction back", func(b *bed) {
		require.NoError(b, b.do(b.Context(), tx.Required, func(ctx context.Context) error {
			require.NoError(b, b.insert(ctx, 1))
			require.NoError(b, b.do(ctx, tx.NotSupported, func(ctx context.Context) error {
				_, found := tx.From(ctx, "")
				require.False(b, found)
				require.Empty(b, b.rows(tx.ConnOf(ctx, b.db)))
				return nil
			}))
			return b.insert(ctx, 2)
		}))
		b.committed(1, 2)
	}},
	{"NOT_SUPPORTED runs without one where there is none", func(b *bed) {
		require.ErrorIs(b, b.do(b.Context(), tx.NotSupported, b.failing(1)), errWork)
		b.committed(1)
	}},
	{"MANDATORY joins a transaction", func(b *bed) {
		require.NoError(b, b.do(b.Context(), tx.Required, func(ctx context.Context) error {
			return b.do(ctx, tx.Mandatory, b.inserting(1))
		}))
		b.committed(1)
	}},
	{"MANDATORY fails at once without one, also in a suspended one", func(b *bed) {
		require.ErrorIs(b, b.do(b.Context(), tx.Mandatory, b.never), tx.ErrNoTransaction)
		require.NoError(b, b.do(b.Context(), tx.Required, func(ctx context.Context) error {
			return b.do(ctx, tx.NotSupported, func(ctx context.Context) error {
				require.ErrorIs(b, b.do(ctx, tx.Mandatory, b.never), tx.ErrNoTransaction)
				return nil
			})
		}))
	}},
	{"NEVER fails at once with one, which goes on", func(b *bed) {
		require.NoError(b, b.do(b.Context(), tx.Required, func(ctx context.Context) error {
			require.ErrorIs(b, b.do(ctx, tx.Never, b.never), tx.ErrTransaction)
			return b.insert(ctx, 1)
		}))
		b.committed(1)
	}},
	{"NEVER runs without one", func(b *bed) {
		require.ErrorIs(b, b.do(b.Context(), tx.Never, b.failing(1)), errWork)
		b.committed(1)
	}},
}

func (b *bed) never(context.Context) error {
	b.Error("the work was run")
	return nil
}

// outsideSurvives: tx.Outside writes outside an unsuspended transaction, and never waits for
// itself.
func outsideSurvives(b *bed) {
	_, free := tx.Outside(b.Context(), tx.Default)
	require.True(b, free, "there is nothing to be outside of")
	err := b.do(b.Context(), tx.Required, func(ctx context.Context) error {
		require.NoError(b, b.insert(ctx, 1))
		return b.do(ctx, tx.Nested, func(ctx context.Context) error {
			outside, ok := tx.Outside(ctx, tx.Default)
			require.Equal(b, !b.db.SingleWriter(), ok)
			_, in := tx.From(outside, tx.Default)
			require.Equal(b, !ok, in)
			if ok {
				again, still := tx.Outside(outside, tx.Default)
				require.True(b, still)
				require.NoError(b, b.do(again, tx.Required, b.inserting(2)))
			}
			return errWork
		})
	})
	require.ErrorIs(b, err, errWork)
	if b.db.SingleWriter() {
		b.committed()
		return
	}
	b.committed(2)
}

func requiresNewSurvives(b *bed) {
	if b.db.SingleWriter() {
		b.singleWriter(tx.RequiresNew)
		return
	}
	err := b.do(b.Context(), tx.Required, func(ctx context.Context) error {
		require.NoError(b, b.insert(ctx, 1))
		require.NoError(b, b.do(ctx, tx.RequiresNew, func(inner context.Context) error {
			require.NotSame(b, tx.ConnOf(ctx, b.db), tx.ConnOf(inner, b.db))
			require.Equal(b, 2, tx.Held(inner, ""))
			return b.insert(inner, 2)
		}))
		b.committed(2)
		return errWork
	})
	require.ErrorIs(b, err, errWork)
	b.committed(2)
}

// singleWriter proves the refusal of a second writer, instead of a hang (rule T3).
func (b *bed) singleWriter(p tx.Propagation) {
	require.NoError(b, b.do(b.Context(), tx.Required, func(ctx context.Context) error {
		require.ErrorIs(b, b.do(ctx, p, b.never), tx.ErrSingleWriter)
		require.NoError(b, b.do(ctx, tx.NotSupported, func(ctx context.Context) error {
			require.ErrorIs(b, b.do(ctx, tx.Required, b.never), tx.ErrSingleWriter)
			return nil
		}))
		read := tx.Attr{Propagation: tx.RequiresNew, ReadOnly: true}
		require.NoError(b, b.manager.Do(ctx, read, func(ctx context.Context) error {
			require.ErrorIs(b, b.do(ctx, p, b.never), tx.ErrSingleWriter)
			return nil
		}))
		return b.insert(ctx, 1)
	}))
	b.committed(1)
}

func nestedInNested(b *bed) {
	require.NoError(b, b.do(b.Context(), tx.Required, func(ctx context.Context) error {
		return b.do(ctx, tx.Nested, func(ctx context.Context) error {
			require.NoError(b, b.insert(ctx, 1))
			require.ErrorIs(b, b.do(ctx, tx.Nested, b.failing(2)), errWork)
			err := b.do(ctx, tx.Nested, func(ctx context.Context) error {
				require.NoError(b, b.do(ctx, tx.Nested, b.inserting(3)))
				return errWork
			})
			require.ErrorIs(b, err, errWork)
			return b.insert(ctx, 4)
		})
	}))
	b.committed(1, 4)
}

func notSupported(b *bed) {
	err := b.do(b.Context(), tx.Required, func(ctx context.Context) error {
		require.NoError(b, b.insert(ctx, 1))
		err := b.do(ctx, tx.NotSupported, b.inserting(2))
		if b.db.SingleWriter() {
			require.ErrorIs(b, err, tx.ErrSingleWriter)
		} else {
			require.NoError(b, err)
		}
		return errWork
	})
	require.ErrorIs(b, err, errWork)
	if b.db.SingleWriter() {
		b.committed()
	} else {
		b.committed(2)
	}
}
