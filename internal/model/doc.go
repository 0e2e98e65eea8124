// Package model is a compiled job as the engine runs it: the flow with its elements and transitions, the
// steps, and the run of a step with the services it uses. The language (internal/jobfile) builds it; the
// job engine, the step executor and the steps run it. Application authors need none of it.
//
// It imports core with its folders only.
package model
