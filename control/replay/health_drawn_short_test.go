//go:build !long && !race

package replay_test

// drawnCaptures is how many captures TestHealthOfDrawn draws.
const drawnCaptures = 500

// eachJudged: TestSecondOpinion has one in so many scenarios judged. 3 has no common factor with the ways, sides and captures.
const eachJudged = 3
