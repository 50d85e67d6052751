package main

// job is the repeated work of one worker.
type job struct {
	once func() error
	end  func() // called after the last repetition; nil: nothing
}
