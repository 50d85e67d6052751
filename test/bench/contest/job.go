package main

// job is what one worker does again and again.
type job struct {
	once func() error
	end  func() // when it was done for the last time; nil: nothing
}
