package main

func workloads() []Workload {
	return []Workload{w1(), w2(false), w2(true), pages(), w3(), w3b(), w4(), w5(), w6(), w7(), w8(), w9(), w10(), peak(), start()}
}
