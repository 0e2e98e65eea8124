package main

import "slices"

type spread struct{ median, least, most float64 }

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return spread{median: (sorted[(n-1)/2] + sorted[n/2]) / 2, least: sorted[0], most: sorted[n-1]}
}

func each(runs []run, of func(run) float64) []float64 {
	values := make([]float64, len(runs))
	for i, r := range runs {
		values[i] = of(r)
	}
	return values
}
