import "./styles/fonts.css";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/signin.css";
import { render } from "preact";
import { App } from "./app";
import { startRouter } from "./router";
import { startSession } from "./signing";
import { startTheme } from "./theme";

startTheme();
startRouter();
const root = document.getElementById("page");
if (root) render(<App />, root);
void startSession();
