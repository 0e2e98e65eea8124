package repositorytest

import (
	"errors"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func requestTests() []test {
	return []test{
		{"a request is claimed once, and has its first answer", claimsRequest},
		{"a request starts one execution, whatever races", requestStartsOnce},
		{"a purge forgets requests", purgeForgetsRequests},
	}
}

func claimsRequest(b *bench) {
	key := ports.RequestKey{Client: "anna", Key: "1"}
	for range 2 {
		known, err := b.repo.ClaimRequest(b.ctx, key, "run load")
		require.NoError(b, err)
		require.Equal(b, ports.ClientRequest{}, known)
	}
	_, err := b.repo.ClaimRequest(b.ctx, key, "run other")
	var reused *ports.KeyReusedError
	require.ErrorAs(b, err, &reused)
	require.Equal(b, "1", reused.Key)
	known, err := b.repo.ClaimRequest(b.ctx, ports.RequestKey{Client: "bob", Key: "1"}, "run other")
	require.NoError(b, err)
	require.Equal(b, ports.ClientRequest{}, known, "keys are those of a client")

	for _, answer := range []string{"first", "second"} {
		kept, err := b.other().AnswerRequest(b.ctx, key, answer)
		require.NoError(b, err)
		require.Equal(b, "first", kept)
	}
	known, err = b.repo.ClaimRequest(b.ctx, key, "run load")
	require.NoError(b, err)
	require.Equal(b, ports.ClientRequest{Answer: "first"}, known)
	_, err = b.repo.AnswerRequest(b.ctx, ports.RequestKey{Client: "anna", Key: "2"}, "x")
	require.ErrorIs(b, err, core.ErrNotFound)
}

func requestStartsOnce(b *bench) {
	const launches = 4
	key := ports.RequestKey{Client: "anna", Key: "1"}
	_, err := b.repo.ClaimRequest(b.ctx, key, "run load")
	require.NoError(b, err)
	var all sync.WaitGroup
	var won [launches]core.JobExecutionID
	var refused [launches]error
	for i := range launches {
		repo, req := b.other(), b.request("a", int64(i))
		req.Request = key
		all.Go(func() {
			launched, err := repo.Launch(b.ctx, req)
			if refused[i] = err; err == nil {
				won[i] = launched.Execution.ID
			}
		})
	}
	all.Wait()
	var id core.JobExecutionID
	for i, err := range refused {
		if err == nil {
			require.Zero(b, id, "two launches")
			id = won[i]
			continue
		}
		require.True(b, errors.As(err, new(*ports.RequestStartedError)), "%v", err)
	}
	require.NotZero(b, id)
	list, err := b.repo.Executions(b.ctx, ports.ExecutionFilter{})
	require.NoError(b, err)
	require.Len(b, list, 1)
	instances, err := b.repo.Instances(b.ctx, ports.InstanceFilter{})
	require.NoError(b, err)
	require.Len(b, instances, 1, "those that were refused left nothing")
	known, err := b.repo.ClaimRequest(b.ctx, key, "run load")
	require.NoError(b, err)
	require.Equal(b, ports.ClientRequest{Execution: id}, known)

	req := b.request("a", 100)
	req.Request = ports.RequestKey{Client: "anna", Key: "never claimed"}
	_, err = b.repo.Launch(b.ctx, req)
	require.Error(b, err)
}

func purgeForgetsRequests(b *bench) {
	key := ports.RequestKey{Client: "anna", Key: "1"}
	_, err := b.repo.ClaimRequest(b.ctx, key, "run load")
	require.NoError(b, err)
	for _, filter := range []ports.PurgeFilter{
		{EndedBefore: time.Now().Add(-time.Hour)},
		{EndedBefore: time.Now().Add(time.Hour), DryRun: true},
		{EndedBefore: time.Now().Add(time.Hour), JobName: "load"},
	} {
		_, err = b.repo.Purge(b.ctx, filter, "op")
		require.NoError(b, err)
		_, err = b.repo.ClaimRequest(b.ctx, key, "run other")
		require.ErrorAs(b, err, new(*ports.KeyReusedError))
	}
	_, err = b.repo.Purge(b.ctx, ports.PurgeFilter{EndedBefore: time.Now().Add(time.Hour)}, "op")
	require.NoError(b, err)
	known, err := b.repo.ClaimRequest(b.ctx, key, "run other")
	require.NoError(b, err)
	require.Equal(b, ports.ClientRequest{}, known)
}
